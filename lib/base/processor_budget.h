// The processor time that a request may take.
//
//   const ProcessorBudget budget(std::chrono::seconds(10), ThreadProcessorTime);   // the request
//   for (const Json& item : list) {
//     ProcessorBudget::Spend();          // throws ProcessorBudget::Exceeded when it is used up
//     …
//   }
//
// Bodies are bounded, but the work grows with the data that a body meets: the object, a schema, all
// objects of a kind. A budget belongs to the thread that made it, for the budget's scope. Code that
// walks a value spends steps without knowing the request. A step is the work with one value, some
// hundred nanoseconds; every thousand steps the time is read. A thread without a budget, such as
// background work, spends nothing.
//
// An exception ends the request anywhere: the request's resources are scopes. Once a change is
// being written to disk, Lift ends the budget, because a written change must be answered.
//
// Thread safety: a budget belongs to one thread.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>

namespace tahoma {

// The processor time of the calling thread (CLOCK_THREAD_CPUTIME_ID).
std::chrono::nanoseconds ThreadProcessorTime();

class ProcessorBudget {
 public:
  // The processor time of this thread; only differences count.
  using Now = std::function<std::chrono::nanoseconds()>;

  class Exceeded : public std::exception {
   public:
    explicit Exceeded(std::chrono::nanoseconds limit) : limit_(limit) {}
    std::chrono::nanoseconds limit() const { return limit_; }
    const char* what() const noexcept override { return "the processor budget is used up"; }

   private:
    std::chrono::nanoseconds limit_;
  };

  ProcessorBudget(std::chrono::nanoseconds limit, Now now);
  ~ProcessorBudget() { current_ = outer_; }
  ProcessorBudget(const ProcessorBudget&) = delete;
  ProcessorBudget& operator=(const ProcessorBudget&) = delete;

  // So many comparisons of short texts are a step.
  static constexpr std::size_t kComparisonsOfStep = 16;

  // Some steps of work are about to be done.
  static void Spend(std::size_t steps = 1) {
    if (current_ == nullptr) return;
    current_->steps_left_ -= static_cast<std::int64_t>(steps);
    if (current_->steps_left_ <= 0) current_->Look();
  }
  // The work with a text of this many bytes.
  static void SpendBytes(std::size_t bytes) { Spend(1 + bytes / kBytesOfStep); }
  // Stops counting this thread's work until its budget goes out of scope.
  static void Lift() { current_ = nullptr; }

 private:
  static constexpr std::int64_t kStepsOfLook = 1000;
  static constexpr std::size_t kBytesOfStep = 256;

  void Look();

  inline static thread_local constinit ProcessorBudget* current_ = nullptr;

  ProcessorBudget* const outer_;
  const Now now_;
  const std::chrono::nanoseconds limit_;
  const std::chrono::nanoseconds start_;
  std::int64_t steps_left_ = kStepsOfLook;
};

}  // namespace tahoma

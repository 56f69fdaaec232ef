// Waiting, passed in.
//
//   if (!sleeper.Sleep(std::chrono::seconds(1))) return;     // the program ends
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace tahoma::kube {

class Sleeper {
 public:
  virtual ~Sleeper() = default;
  // False when the wait was interrupted, now or earlier.
  virtual bool Sleep(std::chrono::nanoseconds duration) = 0;
};

// Real waiting, until Interrupt.
class InterruptibleSleeper final : public Sleeper {
 public:
  bool Sleep(std::chrono::nanoseconds duration) override {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, duration, [&] { return interrupted_; });
  }
  // Ends all waits, and those to come.
  void Interrupt() {
    {
      const std::lock_guard lock(mutex_);
      interrupted_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool interrupted_ = false;
};

}  // namespace tahoma::kube

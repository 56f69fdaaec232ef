#include "lib/base/processor_budget.h"

#include <ctime>
#include <utility>

#include "lib/base/check.h"

namespace tahoma {

std::chrono::nanoseconds ThreadProcessorTime() {
  timespec now{};
  TAHOMA_CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

ProcessorBudget::ProcessorBudget(std::chrono::nanoseconds limit, Now now)
    : outer_(current_), now_(std::move(now)), limit_(limit), start_(now_()) {
  current_ = this;
}

void ProcessorBudget::Look() {
  steps_left_ = kStepsOfLook;
  if (now_() - start_ > limit_) throw Exceeded(limit_);
}

}  // namespace tahoma

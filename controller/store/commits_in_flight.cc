#include "controller/store/commits_in_flight.h"

namespace tahoma::controller {

void CommitsInFlight::Start() {
  const std::lock_guard lock(mutex_);
  ++unanswered_;
}

void CommitsInFlight::Answer(const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  failure_.Update(status);
  // Under the lock: after it, the one who waits may be gone.
  if (--unanswered_ == 0) answered_.notify_one();
}

absl::Status CommitsInFlight::Land() {
  std::unique_lock lock(mutex_);
  answered_.wait(lock, [&] { return unanswered_ == 0; });
  return failure_;
}

}  // namespace tahoma::controller

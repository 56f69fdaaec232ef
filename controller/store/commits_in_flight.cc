#include "controller/store/commits_in_flight.h"

#include "lib/base/check.h"

namespace tahoma::controller {

void CommitsInFlight::Start() {
  const MutexLock lock(mutex_);
  ++unanswered_;
}

void CommitsInFlight::Answer(const absl::Status& status) {
  const MutexLock lock(mutex_);
  TAHOMA_CHECK(unanswered_ > 0);  // a second answer would let Land return before another commit's
  failure_.Update(status);
  // Notifies under the lock: after it, the waiting thread's object may be gone.
  if (--unanswered_ == 0) answered_.NotifyOne();
}

absl::Status CommitsInFlight::Land() {
  const MutexLock lock(mutex_);
  while (unanswered_ != 0) answered_.Wait(mutex_);
  return failure_;
}

}  // namespace tahoma::controller

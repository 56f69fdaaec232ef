#include "controller/apiserver/controllers/controller_threads.h"

#include "controller/apiserver/controllers/fields.h"

namespace tahoma::controller::apiserver {
namespace {

// How long the observer waits before it checks for a stop and for due work.
constexpr std::chrono::milliseconds kLook{10};
// The most pieces of work that a thread does together: equal kinds of writes are sent together, all
// others one after the other.
constexpr int kTogether = 16;
constexpr std::size_t kEnoughForOne = 8;

}  // namespace

ControllerThreads::ControllerThreads(Controllers& controllers, const ObjectStore& objects,
                                     const Clock& clock, int workers)
    : controllers_(controllers), objects_(objects), clock_(clock), workers_(workers) {
  threads_.emplace_back([this] { ObserveUntilStopped(); });
  for (int i = 0; i < workers; ++i) {
    threads_.emplace_back([this] { WorkUntilStopped(); });
  }
}

ControllerThreads::~ControllerThreads() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
}

void ControllerThreads::ObserveUntilStopped() {
  const std::size_t most = kEnoughForOne * static_cast<std::size_t>(workers_);
  for (std::int64_t seen = -1; !stopping_; objects_.WaitForChange(seen, kLook)) {
    const std::int64_t version = objects_.version();
    const WallTime now = clock_.WallNow();
    if (version != seen) controllers_.Observe(now);
    seen = version;
    WakeFor(controllers_.CountDue(now, most));
  }
}

// A thread does many pieces together: more threads are woken only for more work.
void ControllerThreads::WakeFor(std::size_t due) {
  if (due == 0) return;
  {
    const MutexLock lock(mutex_);
    ++news_;
  }
  for (std::size_t woken = 0; woken * kEnoughForOne < due; ++woken) wake_.NotifyOne();
}

void ControllerThreads::WorkUntilStopped() {
  std::uint64_t known = 0;
  while (!stopping_) {
    {
      const MutexLock lock(mutex_);
      known = news_;
    }
    if (controllers_.DoSome(clock_.WallNow(), kTogether) > 0) continue;
    const MutexLock lock(mutex_);
    while (!stopping_ && news_ == known) wake_.Wait(mutex_);
  }
}

}  // namespace tahoma::controller::apiserver

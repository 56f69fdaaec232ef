#include "controller/apiserver/duties/duty_threads.h"

#include "controller/apiserver/duties/fields.h"

namespace tahoma::controller {
namespace {

// How long a thread waits before it looks again whether to stop or whether work is due.
constexpr std::chrono::milliseconds kLook{10};
// Work that a thread does together. More would keep the others waiting for what one of them needs.
constexpr int kTogether = 64;

}  // namespace

DutyThreads::DutyThreads(Duties& duties, const ObjectStore& objects, const Clock& clock,
                         int workers)
    : duties_(duties), objects_(objects), clock_(clock) {
  threads_.emplace_back([this] { ObserveUntilStopped(); });
  for (int i = 0; i < workers; ++i) {
    threads_.emplace_back([this] { WorkUntilStopped(); });
  }
}

DutyThreads::~DutyThreads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
}

void DutyThreads::ObserveUntilStopped() {
  for (std::int64_t seen = -1; !stopping_; objects_.WaitForChange(seen, kLook)) {
    const std::int64_t version = objects_.version();
    if (version == seen) continue;
    seen = version;
    const WallTime now = clock_.WallNow();
    duties_.Observe(now);
    const auto due = duties_.NextDue();
    if (!due || *due > now) continue;
    {
      const std::lock_guard lock(mutex_);
      ++news_;
    }
    wake_.notify_all();
  }
}

void DutyThreads::WorkUntilStopped() {
  std::uint64_t known = 0;
  while (!stopping_) {
    {
      const std::lock_guard lock(mutex_);
      known = news_;
    }
    if (duties_.DoSome(clock_.WallNow(), kTogether) > 0) continue;
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, kLook, [&] { return stopping_ || news_ != known; });
  }
}

}  // namespace tahoma::controller

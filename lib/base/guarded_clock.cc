#include "lib/base/guarded_clock.h"

#include <fmt/format.h>

#include <utility>

namespace tahoma::controller {
namespace {

// A clock that is set again while a leap is being proved has begun another leap.
constexpr std::chrono::minutes kSame{1};

}  // namespace

GuardedClock::GuardedClock(const Clock& machine, LogLine log)
    : machine_(machine),
      log_(std::move(log)),
      believed_(machine.WallNow() - machine.MonotonicNow().time_since_epoch()) {}

WallTime GuardedClock::WallNow() const {
  const MonotonicTime now = machine_.MonotonicNow();
  const Offset shown = machine_.WallNow() - now.time_since_epoch();
  const MutexLock lock(mutex_);
  believed_ = Follow(shown, now);
  return believed_ + now.time_since_epoch();
}

// Returns the time to believe when the machine's clock shows `shown`.
GuardedClock::Offset GuardedClock::Follow(Offset shown, MonotonicTime now) const {
  if (shown - believed_ <= kLeapMost) {
    if (leap_) log_("the machine's clock is back; its leap ahead has changed nothing");
    leap_.reset();
    return shown;
  }
  if (!leap_ || shown - leap_->to > kSame || leap_->to - shown > kSame) {
    leap_ = {.to = shown, .since = now};
    log_(fmt::format(
        "the machine's clock leapt ahead to {}: Capacity Blocks and gangs go on at {}; it is "
        "believed when it stays so for {} minutes, or after a restart",
        FormatTime(shown + now.time_since_epoch()), FormatTime(believed_ + now.time_since_epoch()),
        kProof.count()));
  }
  if (now - leap_->since < kProof) return believed_;
  log_(fmt::format("the machine's clock has stayed ahead: it is {} now",
                   FormatTime(shown + now.time_since_epoch())));
  leap_.reset();
  return shown;
}

std::chrono::nanoseconds GuardedClock::leap() const {
  const MutexLock lock(mutex_);
  return leap_ ? leap_->to - believed_ : std::chrono::nanoseconds(0);
}

}  // namespace tahoma::controller

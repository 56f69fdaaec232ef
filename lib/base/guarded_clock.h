// The machine's clock, of which a leap far ahead is not believed before it has lasted.
//
//   const SystemClock machine;
//   const GuardedClock clock(machine, Log);
//   clock.WallNow();      // goes on as before for ten minutes when the machine's leaps by months
//
// Time that Capacity Blocks have seen does not go back (reserve/book.h): a clock that is wrong for
// a minute would deliver and end every block of the months that it leapt over. So more than a day
// ahead of what the monotonic clock says, the wall clock is followed only when it has stayed there
// for ten minutes; if it comes back before, nothing has happened. Steps back, and smaller ones
// ahead, are followed at once. What a process finds when it starts is believed.
//
// Scope: one process. What becomes of blocks when such a time is believed:
// docs/formats/capacity-blocks.md#clock.
//
// Thread safety: any thread.

#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace tahoma::controller {

class GuardedClock final : public Clock {
 public:
  // A machine that was asleep over night goes on at once.
  static constexpr std::chrono::hours kLeapMost{24};
  static constexpr std::chrono::minutes kProof{10};
  using LogLine = std::function<void(const std::string& line)>;

  // `machine` must outlive it.
  GuardedClock(const Clock& machine, LogLine log);

  WallTime WallNow() const override;
  MonotonicTime MonotonicNow() const override { return machine_.MonotonicNow(); }
  // Returns how far the machine's clock is ahead of this one.
  std::chrono::nanoseconds leap() const;

 private:
  // What the wall clock shows at the monotonic clock's zero.
  using Offset = WallTime;
  struct Leap {
    Offset to;
    MonotonicTime since;
  };

  Offset Follow(Offset shown, MonotonicTime now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& machine_;
  const LogLine log_;
  mutable Mutex mutex_;
  mutable Offset believed_ ABSL_GUARDED_BY(mutex_);
  mutable std::optional<Leap> leap_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::controller

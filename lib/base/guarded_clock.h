// The machine's clock; a leap far ahead is believed only when it lasts.
//
//   const SystemClock machine;
//   const GuardedClock clock(machine, Log);
//   clock.WallNow();      // goes on as before for ten minutes when the machine's leaps by months
//
// Time that Capacity Blocks have seen does not go back (reserve/book.h): a clock wrong for a minute
// would deliver and end every block of the months in between. So a wall clock more than a day ahead
// of the monotonic clock is followed only after ten minutes; a clock that returns earlier changes
// nothing. Steps back, and smaller steps ahead, are followed at once. The time at a process's start
// is believed.
//
// Scope: one process. docs/formats/capacity-blocks.md#clock says how blocks take such a leap.
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
  // A machine that slept over night goes on at once.
  static constexpr std::chrono::hours kLeapMost{24};
  static constexpr std::chrono::minutes kProof{10};
  using LogLine = std::function<void(const std::string& line)>;

  // `machine` must outlive this clock.
  GuardedClock(const Clock& machine, LogLine log);

  WallTime WallNow() const override;
  MonotonicTime MonotonicNow() const override { return machine_.MonotonicNow(); }
  // Returns how far the machine's clock is ahead of this clock.
  std::chrono::nanoseconds leap() const;

 private:
  // The wall clock's time at the monotonic clock's zero.
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

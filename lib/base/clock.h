// Clocks, which are passed in.
//
//   void Tick(const Clock& clock) { fmt::print("it is {}\n", FormatTime(clock.WallNow())); }
//
// Wall time is what users and Kubernetes see; monotonic time is for time-outs. They are different
// types and do not mix. Nothing outside lib/base and the programs' app folders reads the system
// clock itself; tests and the simulator pass a ManualClock.
//
// Thread safety: all functions may be called from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tahoma {

using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;
using MonotonicTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// Both clocks at one moment.
struct Now {
  WallTime wall;
  MonotonicTime monotonic;
};
// Returns how long a wait on the monotonic clock must be until the wall clock shows `when`; 0 when
// `when` is past. A wall clock that is set during the wait is the caller's affair.
inline std::chrono::nanoseconds UntilWall(WallTime when, const Now& now) {
  return when <= now.wall ? std::chrono::nanoseconds(0) : when - now.wall;
}

class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime WallNow() const = 0;
  virtual MonotonicTime MonotonicNow() const = 0;
};

// The machine's own clock.
class SystemClock final : public Clock {
 public:
  WallTime WallNow() const override;
  MonotonicTime MonotonicNow() const override;
};

// Moves only when told to. Both times advance together.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(WallTime start = WallTime{}) : start_(start) {}
  WallTime WallNow() const override;
  MonotonicTime MonotonicNow() const override;
  void Advance(std::chrono::nanoseconds by) { elapsed_ns_ += by.count(); }

 private:
  WallTime start_;
  std::atomic<std::int64_t> elapsed_ns_ = 0;
};

// RFC 3339 as Kubernetes writes it: "2026-11-21T09:35:00Z" (metav1.Time) and with six digits of
// fraction, "2026-11-21T09:35:00.000000Z" (metav1.MicroTime: Lease and Event).
std::string FormatTime(WallTime time);
std::string FormatMicroTime(WallTime time);

// Reads RFC 3339 in UTC ("Z") with 0 to 9 digits of fraction; anything else is kInvalidArgument.
absl::StatusOr<WallTime> ParseTime(std::string_view text);

}  // namespace tahoma

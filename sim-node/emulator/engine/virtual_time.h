// Virtual time: the time inside the emulated machine.
//
//   VirtualTime start{};                                   // the emulation's beginning
//   VirtualTime end = start + Microseconds(1.5);
//   Nanoseconds(end - start);                              // 1500.0
//   TransferTime(1 << 20, 128'000'000'000);                // 1 MiB over one X link, rounded up
//
// The resolution is one picosecond: a byte takes 7.8 ps on an X/Y NeuronLink. 63 bits of
// picoseconds are 106 days. Virtual time has its own clock type and never mixes with wall or
// monotonic time; only the emulation advances virtual time.

#pragma once

#include <chrono>
#include <cstdint>
#include <ratio>

namespace tahoma::sim {

using VirtualDuration = std::chrono::duration<std::int64_t, std::pico>;

// The tag of virtual time. The tag has no now(): outside an emulation there is no "now".
struct VirtualClock {
  using duration = VirtualDuration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<VirtualClock, duration>;
  static constexpr bool is_steady = true;
};
using VirtualTime = VirtualClock::time_point;

// Holds bytes x 10^12, for the exact arithmetic of transfers.
__extension__ using Wide = unsigned __int128;

inline constexpr std::uint64_t kPicosecondsPerSecond = 1'000'000'000'000;

// Rounded to the nearest picosecond.
constexpr VirtualDuration Microseconds(double value) {
  return VirtualDuration(static_cast<std::int64_t>(value * 1e6 + (value < 0 ? -0.5 : 0.5)));
}
constexpr double Nanoseconds(VirtualDuration duration) {
  return static_cast<double>(duration.count()) / 1e3;
}

// Time for `bytes` at a steady rate, rounded up. `bytes_per_second` must be positive.
constexpr VirtualDuration TransferTime(std::uint64_t bytes, std::uint64_t bytes_per_second) {
  const Wide work = static_cast<Wide>(bytes) * kPicosecondsPerSecond;
  return VirtualDuration(
      static_cast<std::int64_t>((work + bytes_per_second - 1) / bytes_per_second));
}

}  // namespace tahoma::sim

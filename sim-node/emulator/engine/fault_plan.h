// Faults that will happen, known before the emulation starts.
//
//   Rng rng(seed);
//   FaultPlan plan =
//       FaultPlan::Draw(rng, {.targets = 384, .count = 3, .horizon = Microseconds(50)});
//   for (const Fault& fault : plan.faults()) …             // in order of time
//
//   FaultPlan::Flapping({.target = 7, .from = start, .until = end, .period = Microseconds(100),
//                        .down = Microseconds(10)});     // down at start, up 10 us later, …
//
// A target is a number whose meaning is the reader's (a directed link for emulator/link). The same
// seed gives the same plan on every machine.

#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/rng.h"
#include "sim-node/emulator/engine/virtual_time.h"

namespace tahoma::sim {

struct Fault {
  VirtualTime at;
  std::uint32_t target = 0;
  // The rate of the target from then on, in thousandths of its full rate: 0 = down, 1000 =
  // repaired.
  std::uint16_t permille = 0;
  friend bool operator==(const Fault&, const Fault&) = default;
};

class FaultPlan {
 public:
  struct Choice {
    std::uint32_t targets = 0;  // faults hit targets 0 .. targets - 1
    std::uint32_t count = 0;    // faults to draw
    VirtualDuration horizon{};  // all happen in [0, horizon)
    bool repair = true;         // each is followed by a repair before the horizon's end
  };

  FaultPlan() = default;
  // Sorts by (time, target); faults of one instant and target keep their order.
  explicit FaultPlan(std::vector<Fault> faults);

  // Half of the faults take a target down, half leave 100 .. 900 thousandths of its rate.
  // `targets` and `horizon` must be positive if `count` is.
  static FaultPlan Draw(Rng& rng, const Choice& choice);

  struct Flap {
    std::uint32_t target = 0;
    VirtualTime from;  // goes down for the first time
    VirtualTime until;
    VirtualDuration period{};
    VirtualDuration down{};            // of each period
    std::uint16_t up_permille = 1000;  // of its rate while it is up
  };
  // Down at `from` and every period after it, up again `down` later; nothing at `until` or after
  // it. 0 < down < period.
  static FaultPlan Flapping(const Flap& flap);

  // Returns both plans in one.
  FaultPlan And(const FaultPlan& other) const;

  const std::vector<Fault>& faults() const& { return faults_; }
  const std::vector<Fault>& faults() && = delete;  // would dangle

 private:
  std::vector<Fault> faults_;
};

}  // namespace tahoma::sim

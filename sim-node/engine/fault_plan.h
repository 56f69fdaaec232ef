// Faults that will happen, known before the emulation starts.
//
//   Rng rng(seed);
//   FaultPlan plan =
//       FaultPlan::Draw(rng, {.targets = 384, .count = 3, .horizon = Microseconds(50)});
//   for (const Fault& fault : plan.faults()) ...           // in order of time
//
// A target is a number whose meaning is the reader's (a directed link for sim-node/link). The same
// seed gives the same plan on every machine.
//
// Thread safety: values.

#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/rng.h"
#include "sim-node/engine/virtual_time.h"

namespace tahoma::sim {

struct Fault {
  VirtualTime at;
  std::uint32_t target = 0;
  // What is left of the target's rate, in thousandths: 0 = down, 1000 = repaired.
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

  const std::vector<Fault>& faults() const& { return faults_; }
  const std::vector<Fault>& faults() && = delete;  // would dangle

 private:
  std::vector<Fault> faults_;
};

}  // namespace tahoma::sim

// Estimates how long a plan will take on a healthy box, without making its messages: by closed
// forms, in microseconds of the host rather than milliseconds.
//
// The choice between algorithms rests on the estimate; the chosen plan is then timed message by
// message. The two times differ by the rounding to whole elements.
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/torus/box.h"
#include "sim-node/emulator/collective/algorithms/algorithms.h"
#include "sim-node/emulator/collective/algorithms/chip_set.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

struct StepOutline {
  VirtualDuration link{};   // the fullest link
  int links = 1;            // on the longest route
  std::uint64_t bytes = 0;  // that a chip sends, and as many that it receives
  int destinations = 1;     // of a chip
};

// One phase, as reduce-scatter does it, of `bytes` on each chip. An all-gather has the same steps
// backwards.
std::vector<StepOutline> MeshOutline(const torus::Box& box, const TorusLinks& links,
                                     std::uint64_t bytes);
std::vector<StepOutline> HalvingOutline(const std::vector<Channel>& channels, const torus::Box& box,
                                        const TorusLinks& links, std::uint64_t bytes);
std::vector<StepOutline> RingOutline(const ChipSet& set, const TorusLinks& links,
                                     std::uint64_t bytes);
// A step of a whole collective: of all its buffer stripes together.
struct PlannedStep {
  StepOutline outline;
  StepWork work;  // of one stripe
};

// Times steps that each of `stripes` buffer stripes takes in order, as a Schedule does.
VirtualDuration EstimateTime(const std::vector<PlannedStep>& steps, std::size_t stripes,
                             const LinkTiming& timing);

}  // namespace tahoma::sim

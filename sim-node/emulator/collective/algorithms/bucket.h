// The bucket algorithm of an UltraServer: axis by axis, round the rings of 4 chips.
//
//   auto steps = BucketSteps(Phase::kReduceScatter, set, torus, layout, /*stripes=*/16);
//
// Z links have half the rate of X/Y links, so data that went through the axes in one order alone
// would leave some links idle. It goes in two classes: one over X and Y first, then over Z, the
// other in the opposite order (docs/reference/collectives.md#two-classes).
//
// One buffer stripe takes nine steps a phase, and 16/21 of it is of the first class: 1.088 times
// the bound. There, the second class goes over Z in the pace of the first one's X/Y steps, and over
// X and Y directly. More stripes follow one another step by step, all round the rings: from the
// ninth step on all links are busy all the time, with 59/75 in the first class.
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <vector>

#include "sim-node/emulator/collective/algorithms/algorithms.h"
#include "sim-node/emulator/collective/algorithms/chip_set.h"
#include "sim-node/emulator/collective/schedule/schedule.h"

namespace tahoma::sim {

// The transfer of one part of the data over one axis.
struct BucketLeg {
  torus::Axis axis = torus::Axis::kX;
  std::size_t first_step = 0;
  bool direct = false;  // one step, everybody to everybody; otherwise three, round the ring
};

// A channel: a part of each buffer stripe with a route of its own.
struct BucketChannel {
  std::vector<BucketLeg> legs;
  torus::Direction direction = torus::Direction::kPlus;  // round the rings
  std::uint32_t weight = 1;
};

std::vector<BucketChannel> BucketChannels(bool pipelined);

// The set must be a whole UltraServer.
std::vector<Step> BucketSteps(Phase phase, const ChipSet& set, const torus::Shape& torus,
                              const Layout& layout, std::size_t stripes);

}  // namespace tahoma::sim

// The steps of collectives along trees (lib/collective/trees.h).
//
//   const auto plan = collective::FastestTrees(request, set.chips(), links, links.costs());
//   std::vector<Step> steps = TreeSteps(Phase::kAllGather, set, plan->phases[0].second, layout);
//
// Thread safety: pure functions.

#pragma once

#include <vector>

#include "lib/collective/trees.h"
#include "sim-node/emulator/collective/algorithms/algorithms.h"
#include "sim-node/emulator/collective/algorithms/chip_set.h"
#include "sim-node/emulator/collective/schedule/schedule.h"

namespace tahoma::sim {

// The trees are of the set's chips, in their order. Pieces lie in the blocks of their chips, or,
// when it does not matter which chip has which block (layout.fixed), one after the other in the
// whole buffer. Steps may be empty when there are fewer elements than pieces.
std::vector<Step> TreeSteps(Phase phase, const ChipSet& set, const collective::Trees& trees,
                            const Layout& layout);

}  // namespace tahoma::sim

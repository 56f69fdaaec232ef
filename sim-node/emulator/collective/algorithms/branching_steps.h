// A broadcast along packed trees (lib/collective/branchings.h): each carries its share of the
// buffer from the root to all others, chunk after chunk.
//
//   const auto trees = collective::PackBranchings(links, set.mask(), root);
//   const Layout parts = Layout::Weighted(std::vector(64, 1), elements, /*element_bytes=*/4);
//   std::vector<Step> steps = BranchingSteps(trees, parts);
//
// In step i the block of the layout that left the root in step i - d crosses the links that end
// d + 1 from it. So there are as many steps as blocks, and one more for each further link of the
// highest tree.
//
// Thread safety: pure functions.

#pragma once

#include <vector>

#include "lib/collective/branchings.h"
#include "sim-node/emulator/collective/algorithms/algorithms.h"
#include "sim-node/emulator/collective/schedule/schedule.h"

namespace tahoma::sim {

// The steps of one stripe: of every `stripe.count`-th block, from `stripe.index` on. There must be
// a tree and a block. Steps may be empty where blocks are; all stripes have as many steps.
std::vector<Step> BranchingSteps(const std::vector<collective::Branching>& trees,
                                 const Layout& parts, Stripe stripe = {});

}  // namespace tahoma::sim

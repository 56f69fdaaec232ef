// A broadcast along packed trees (lib/collective/branchings.h): each carries its share of the
// buffer from the root to all others, chunk after chunk.
//
//   const auto trees = collective::PackBranchings(links, set.mask(), root);
//   std::vector<Step> steps = BranchingSteps(trees, /*chunks=*/64, layout);
//
// In step i a chunk that left the root in step i - d crosses the links that end d + 1 from it. So
// there are as many steps as chunks, and one more for each further link of the highest tree.
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <vector>

#include "lib/collective/branchings.h"
#include "sim-node/collective/algorithms/algorithms.h"
#include "sim-node/collective/schedule/schedule.h"

namespace tahoma::sim {

// The steps of one stripe of the whole buffer. There must be a tree and a chunk. Steps may be empty
// when there are fewer elements than chunks; all stripes have as many.
std::vector<Step> BranchingSteps(const std::vector<collective::Branching>& trees,
                                 std::size_t chunks, const Layout& layout, Stripe stripe = {});

}  // namespace tahoma::sim

// Collectives on any set of chips that hangs together, damaged or not: each piece of the buffer
// spreads along a tree of its own (spread.h), such that all links are busy in nearly every step.
//
//   auto steps = TreeSteps(Phase::kAllGather, set, links, layout, /*parts=*/4);
//
// Each chip's block is cut into parts. More parts fill the links better and need more steps. A
// reduce-scatter is an all-gather backwards, on the links of the other direction. Links of less
// than an eighth of the fastest one's rate are left alone.
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim-node/collective/algorithms/algorithms.h"
#include "sim-node/collective/algorithms/chip_set.h"
#include "sim-node/collective/schedule/schedule.h"
#include "sim-node/link/torus_links.h"

namespace tahoma::sim {

// Returns the steps of the trees; nothing when the links that are fast enough do not join the set.
// Each chip's block is cut into `parts`, of which collective::kTreeParts are worth trying.
std::optional<std::vector<Step>> TreeSteps(Phase phase, const ChipSet& set, const TorusLinks& links,
                                           const Layout& layout, std::size_t parts);

// The same for a broadcast from the first chip of the set to all, the buffer cut into `parts` for
// each chip of the set.
std::optional<std::vector<Step>> TreeBroadcastSteps(const ChipSet& set, const TorusLinks& links,
                                                    const Layout& layout, std::size_t parts);

}  // namespace tahoma::sim

// The order in which the pieces of packed trees follow one another (tree_flow.h).
//
//   const std::vector<std::size_t> order = EvenOrder(packing, lateness);
//   packing.Arrange(order);
//
// Each next tree is the one with which the trees so far use the cables the most evenly, for their
// rates: then links seldom wait for their next piece while others have too many. The first trees
// and the last ones are of those, too, that keep no link waiting for long at the beginning or at
// the end (heads_and_tails.h).
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <vector>

#include "sim-node/emulator/collective/algorithms/packing.h"

namespace tahoma::sim {

// Returns the numbers of the trees in that order. `lateness` says of each by how many steps it
// keeps links waiting.
std::vector<std::size_t> EvenOrder(const TreePacking& packing,
                                   const std::vector<std::size_t>& lateness);

}  // namespace tahoma::sim

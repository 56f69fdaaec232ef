// Evens out packed spanning trees: a tree that uses an over-full cable takes another one for it
// that joins the same two parts of the tree.
//
//   EvenOut(most, highest, trees, cables);   // no cable carries more than most[cable] trees
//
// Where no emptier cable joins the parts, the tree takes a full one, of which another tree lets go,
// and so on: the shortest such chain, as for the union of matroids (Edmonds 1968). Without a limit
// of heights that would reach every packing that there is.
//
// Thread safety: pure functions of what they are given.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim-node/emulator/collective/algorithms/spanning_tree.h"

namespace tahoma::sim {

// Exchanges cables until none carries more trees than `most` says, or no exchange helps that leaves
// trees as low as `highest`, or as they were. Keeps the cables' counts of trees.
void EvenOut(const std::vector<std::uint64_t>& most, std::size_t highest,
             std::vector<SpanningTree>& trees, std::vector<TreeCable>& cables);

}  // namespace tahoma::sim

// Changes packed trees such that pieces flow along them in fewer steps (tree_flow.h).
//
//   const std::vector<LinkLoad> loads = LoadsOf(packing, /*grain=*/2);
//   loads[link].least;                                   // no order of the pieces takes fewer steps
//   packing = ShortenWaits(std::move(packing), /*grain=*/2);
//
// A link may begin a piece when all that the piece needs has had time to come to it (the piece's
// head there), and must end it so early that the rest can follow (its tail). Where all pieces of a
// link have long heads, or long tails, it is idle for that long: the links out of a healthy half of
// the set wait for the sums of all of its chips. Such links should carry fewer trees, and those
// that have something to carry from the first step to the last a few more.
//
// Where that cannot be, because one chip has few cables and each tree must use one of them, the
// chip's part of a sum has gone out long before the result comes back, all the longer the farther
// away the root is. Then roots move towards that chip.
//
// How long a link takes at least is that of one machine with heads and tails (Carlier 1982; the
// bound is of Jackson's order with interruptions): of the pieces with a head and a tail of at least
// so many steps, all must be carried between the two.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <vector>

#include "sim-node/collective/algorithms/packing.h"

namespace tahoma::sim {

// What a link has to carry, in steps in which the fastest link carries `grain` pieces.
struct LinkLoad {
  double busy = 0;
  double least = 0;  // with heads and tails
};

// Returns the loads of the links: 2 i is that of cable i from its one chip to the other, 2 i + 1
// back.
std::vector<LinkLoad> LoadsOf(const TreePacking& packing, std::uint64_t grain);

// Returns a packing of as many trees in which the link that takes the longest takes fewer steps, if
// one is found by exchanges of cables, and no more in any case. Takes some milliseconds.
TreePacking ShortenWaits(TreePacking packing, std::uint64_t grain);

}  // namespace tahoma::sim

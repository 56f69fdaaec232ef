// Changes packed trees such that pieces flow along them in fewer steps (tree_flow.h).
//
//   const std::vector<LinkSteps> steps = StepsOfLinks(packing, /*grain=*/2);
//   steps[0].least;                               // no order of the pieces takes fewer steps
//   const TreePacking better = ShortenWaits(packing, /*grain=*/2);
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

#include "sim-node/emulator/collective/algorithms/packing.h"

namespace tahoma::sim {

// How many steps a link takes. In each, the fastest link carries `grain` pieces.
struct LinkSteps {
  double busy = 0;   // with its pieces alone
  double least = 0;  // with their heads and tails
};

// Returns the steps of the links: 2 i are those of cable i from its one chip to the other, 2 i + 1
// back.
std::vector<LinkSteps> StepsOfLinks(const TreePacking& packing, std::uint64_t grain);

// Returns a packing of as many trees in which the link that takes the longest takes fewer steps
// where exchanges of cables achieve that, and never more. Takes some milliseconds.
TreePacking ShortenWaits(TreePacking packing, std::uint64_t grain);

}  // namespace tahoma::sim

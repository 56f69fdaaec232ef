// Channels for recursive halving and doubling: how it spreads a buffer over the dimensions of a
// box.
//
//   for (const Channel& one : BalancedChannels(box, torus)) …     // as many steps as dimensions
//
// A box with sides 1, 2 and 4 is a hypercube. Halving goes through its dimensions one after the
// other and sends half of what is left each time, so one order alone would use one dimension's
// links at a time. Each block is therefore cut into channels, each with an order of its own, such
// that all links are busy in every step in proportion to their rates
// (docs/reference/collectives.md#halving-and-doubling): on an X/Y plane the rotated orders; with
// slow Z dimensions a Latin square over the X/Y dimensions and one Z, the other Z last.
//
// The last of those steps, with Z links only, costs 6 % of the bound on 4x4x4.
//
// Thread safety: pure functions.

#pragma once

#include <vector>

#include "lib/torus/box.h"
#include "lib/torus/shape.h"

namespace tahoma::collective {

// The dimensions in the order in which the steps of halving use them, those of doubling backwards:
// bits of the address in torus::BoxChips.
using Channel = std::vector<int>;

// Returns channels with equal shares of each block; one without dimensions for a box of one chip.
std::vector<Channel> BalancedChannels(const torus::Box& box, const torus::Shape& torus);

}  // namespace tahoma::collective

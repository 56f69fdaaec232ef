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

#include <cstdint>
#include <vector>

#include "lib/torus/box.h"
#include "lib/torus/shape.h"

namespace tahoma::collective {

struct Channel {
  // Dimensions in the order in which halving uses them: bits of the address in torus::BoxChips.
  std::vector<int> order;
  // The step in which each is used, ascending from 0. Doubling counts from the end.
  std::vector<int> step;
  // Its share of each block, relative to the other channels'.
  std::uint32_t weight = 1;
};

// Returns one channel without dimensions for a box of one chip.
std::vector<Channel> BalancedChannels(const torus::Box& box, const torus::Shape& torus);

}  // namespace tahoma::collective

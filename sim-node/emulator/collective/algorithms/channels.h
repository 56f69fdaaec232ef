// Channels for recursive halving and doubling: how it spreads a buffer over the dimensions of a
// box.
//
//   for (const Channel& one : BalancedChannels(box, torus)) …     // as many steps as dimensions
//   for (const Channel& one : StaggeredChannels(box, torus)) …    // more steps, fuller links
//
// A box with sides 1, 2 and 4 is a hypercube. Halving goes through its dimensions one after the
// other and sends half of what is left each time, so one order alone would use one dimension's
// links at a time. Each block is therefore cut into channels, each with an order of its own, such
// that all links are busy in every step in proportion to their rates
// (docs/reference/collectives.md#halving-and-doubling): on an X/Y plane the rotated orders; with
// slow Z dimensions a Latin square over the X/Y dimensions and one Z, the other Z last.
//
// The last of those steps, with Z links only, costs 6 % of the bound on 4x4x4; and a single Z
// dimension beside f X/Y dimensions has so small a part of the box's rate that it cannot be filled
// step by step. Staggered channels do not all work in the same step: there are two to four steps
// more, slow dimensions serve some channel in each, and a channel that used them early waits until
// others have caught up. The shares are the solution of a linear programme (least sum of step
// times, a step being as long as its busiest link).
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <vector>

#include "lib/torus/box.h"
#include "lib/torus/shape.h"

namespace tahoma::sim {

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

// Returns none where staggering gains nothing, that is unless the box has dimensions of both kinds.
std::vector<Channel> StaggeredChannels(const torus::Box& box, const torus::Shape& torus);

// X/Y dimensions in rotated orders first, then those of Z: what Neuron does.
std::vector<Channel> SlowLastChannels(const torus::Box& box, const torus::Shape& torus);

}  // namespace tahoma::sim

// Routes and rings on the torus.
//
//   Route(kUltraServerShape, ChipIndex(0), ChipIndex(3));   // one link: x wraps around
//   GrayCycle(box, kUltraServerShape);                      // every chip once, in a ring
//
// Scope: arithmetic; capacity and failures of links live in sim-node/emulator/link.

#pragma once

#include <array>
#include <vector>

#include "lib/torus/box.h"
#include "lib/torus/shape.h"

namespace tahoma::torus {

// A directed link, by the sending chip.
struct Hop {
  ChipIndex from;
  ChipIndex to;
  Axis axis;
  Direction direction;

  friend constexpr bool operator==(const Hop&, const Hop&) = default;
};

// The minimal route that corrects x, then y, then z. When both directions round are equally short,
// the route goes in plus direction from an even coordinate and in minus direction from an odd
// coordinate, which spreads uniform traffic evenly. Empty when the chips are the same.
std::vector<Hop> Route(const Shape& torus, ChipIndex from, ChipIndex to);

// The chips of a box along a Hamiltonian cycle (reflected Gray code of the subcube); neighbours in
// the list, and its ends, are joined by links inside the box. A box of 2 chips gives both; 1,
// itself.
std::vector<ChipIndex> GrayCycle(const Box& box, const Shape& torus);

// The two edge-disjoint Hamiltonian cycles of a 4x4 instance, as device numbers
// (docs/reference/collectives.md#cycles-of-an-instance): together they use each of the 32 links
// once.
const std::array<std::array<int, 16>, 2>& InstanceCycles();

// The chips of a box by their hypercube address. The chips at positions n and n ^ (1 << d) are a
// link apart for every dimension d, as recursive halving and doubling needs.
std::vector<ChipIndex> BoxChips(const Box& box, const Shape& torus);

}  // namespace tahoma::torus

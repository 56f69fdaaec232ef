#include "lib/torus/path.h"

#include <cstdint>

#include "lib/base/check.h"

namespace tahoma::torus {
namespace {

constexpr unsigned Gray(unsigned n) { return n ^ (n >> 1U); }

// Returns the position of a corner along a side of 1, 2 or 4 by its address: 0, 1, 3, 2 for 0, 1,
// 2, 3. So addresses with a single different bit are neighbours on the ring.
int PositionOf(unsigned address) {
  constexpr std::array kPositions = {0, 1, 3, 2};
  return kPositions.at(address);
}

int BitsOf(int side) { return side == 4 ? 2 : side == 2 ? 1 : 0; }

ChipIndex ChipAt(const Box& box, const Shape& torus, unsigned address) {
  Coord at;
  for (const Axis axis : kAxes) {
    const int bits = BitsOf(box.size.extent(axis));
    const unsigned part = address & ((1U << static_cast<unsigned>(bits)) - 1U);
    address >>= static_cast<unsigned>(bits);
    at.set(axis, (box.origin.along(axis) + PositionOf(part)) % torus.extent(axis));
  }
  return torus.IndexOf(at);
}

}  // namespace

std::vector<Hop> Route(const Shape& torus, ChipIndex from, ChipIndex to) {
  std::vector<Hop> hops;
  Coord at = torus.CoordOf(from);
  const Coord goal = torus.CoordOf(to);
  for (const Axis axis : kAxes) {
    const int size = torus.extent(axis);
    const int ahead = (goal.along(axis) - at.along(axis) + size) % size;
    const bool tie = 2 * ahead == size;
    const bool plus = tie ? at.along(axis) % 2 == 0 : 2 * ahead < size;
    const Direction direction = plus ? Direction::kPlus : Direction::kMinus;
    for (int left = plus ? ahead : size - ahead; ahead != 0 && left > 0; --left) {
      const Coord next = *torus.Neighbour(at, axis, direction);
      hops.push_back({torus.IndexOf(at), torus.IndexOf(next), axis, direction});
      at = next;
    }
  }
  TAHOMA_CHECK(at == goal);
  return hops;
}

std::vector<ChipIndex> GrayCycle(const Box& box, const Shape& torus) {
  std::vector<ChipIndex> cycle;
  for (int n = 0; n < box.size.chip_count(); ++n) {
    cycle.push_back(ChipAt(box, torus, Gray(static_cast<unsigned>(n))));
  }
  return cycle;
}

const std::array<std::array<int, 16>, 2>& InstanceCycles() {
  static constexpr std::array<std::array<int, 16>, 2> kCycles = {
      {{0, 1, 2, 3, 7, 4, 5, 6, 10, 11, 8, 9, 13, 14, 15, 12},
       {0, 4, 8, 12, 13, 1, 5, 9, 10, 14, 2, 6, 7, 11, 15, 3}}};
  return kCycles;
}

std::vector<ChipIndex> BoxChips(const Box& box, const Shape& torus) {
  std::vector<ChipIndex> chips;
  for (int n = 0; n < box.size.chip_count(); ++n) {
    chips.push_back(ChipAt(box, torus, static_cast<unsigned>(n)));
  }
  return chips;
}

}  // namespace tahoma::torus

// Boxes on the torus as 64-bit masks: the pieces of an UltraServer or an instance that a gang
// holds.
//
//   const BoxTable& ultra = BoxTable::Of(kUltraServerShape);
//   for (const Box& box : ultra.Rotations(*Shape::Parse("4x4x2"))) {
//     if ((free & box.mask) == box.mask && !down.Intersects(box.links)) …     // it fits
//   }
//
// Bit x + 4y + 16z stands for a chip. A box may wrap around. Boxes with sides 1, 2 and 4 are
// exactly the subcubes of the torus taken as a hypercube (81 in 4x4, 729 in 4x4x4). Two disjoint
// subcubes never share a link under minimal routing: only such boxes are offered.
//
// Scope: geometry of tori with sides of 1 or 4; a ring of 12 has no boxes.
//
// Thread safety: the tables are built once, on first use, and are immutable.

#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/torus/shape.h"

namespace tahoma::torus {

using ChipMask = std::uint64_t;

constexpr int ChipCount(ChipMask mask) { return std::popcount(mask); }
constexpr ChipMask MaskOf(ChipIndex chip) { return ChipMask{1} << chip.value(); }

// A set of undirected links. The link from chip c to its neighbour in plus direction along an axis
// is bit c of that axis.
struct LinkMask {
  std::array<std::uint64_t, 3> plus = {0, 0, 0};

  constexpr std::uint64_t& along(Axis axis) { return plus[static_cast<std::size_t>(axis)]; }
  constexpr std::uint64_t along(Axis axis) const { return plus[static_cast<std::size_t>(axis)]; }
  constexpr bool Intersects(const LinkMask& other) const {
    return ((plus[0] & other.plus[0]) | (plus[1] & other.plus[1]) | (plus[2] & other.plus[2])) != 0;
  }
  constexpr bool empty() const { return (plus[0] | plus[1] | plus[2]) == 0; }
  constexpr int count() const {
    return std::popcount(plus[0]) + std::popcount(plus[1]) + std::popcount(plus[2]);
  }
  friend constexpr bool operator==(const LinkMask&, const LinkMask&) = default;
};

// The link that leaves `chip` along `axis` in `direction`, as a set. The axis must have an extent
// above 1 in `torus`.
LinkMask LinkOf(const Shape& torus, ChipIndex chip, Axis axis, Direction direction);

struct Box {
  Coord origin;    // the corner from which the box extends in plus direction, wrapping around
  Shape size;      // as placed, after rotation
  ChipMask mask;   // the box's chips
  LinkMask links;  // links with both ends inside; with a side of 4 the wrap-around link too

  // "4x4x2+0,0,2".
  std::string ToString() const;
};

// All boxes with sides 1, 2 and 4 of a torus.
class BoxTable {
 public:
  // Empty for a torus with sides other than 1 and 4: the pieces of such a torus share links.
  static const BoxTable& Of(const Shape& torus);

  const Shape& torus() const { return torus_; }
  std::span<const Box> all() const { return boxes_; }

  // The boxes of the shape in any rotation, in ascending order of origin (z, then y, then x), so
  // the first fit drains the tail. Empty when a side is not 1, 2 or 4 or nothing fits.
  std::span<const Box> Rotations(const Shape& shape) const;

  // Whether some rotation of the shape lies inside the torus at all.
  bool Fits(const Shape& shape) const { return !Rotations(shape).empty(); }

 private:
  BoxTable() = default;
  explicit BoxTable(const Shape& torus);

  Shape torus_;
  std::vector<Box> boxes_;  // grouped by sorted shape
  struct Group {
    Shape sorted;
    std::size_t begin;
    std::size_t end;
  };
  std::vector<Group> groups_;
};

// The shape in a user's text, "AxB" or "AxBxC". Each side must be 1, 2 or 4: boxes with other sides
// share links with their neighbours. kInvalidArgument names the wrong sides, but not the text.
absl::StatusOr<Shape> ParseOffered(std::string_view text);

// The shapes of `chips` chips that boxes can have, sorted sides, best all-reduce bandwidth first
// (docs/reference/torus.md#boxes). Empty unless chips is 1, 2, 4, 8, 16, 32 or 64.
std::vector<Shape> ShapesOf(int chips);

}  // namespace tahoma::torus

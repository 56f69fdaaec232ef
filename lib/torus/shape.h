// The shape of a torus of chips, and the positions inside it.
//
//   constexpr Shape ultra = Shape::Of<4, 4, 4>();            // an UltraServer
//   ultra.Neighbour({.x = 3}, Axis::kX, Direction::kPlus);   // {0, 0, 0}: the link wraps around
//   ultra.HopDistance({.x = 3}, {.x = 0});                   // 1, for the same reason
//   *Shape::Parse("4x4x2");
//
// x is the column and y the row of a chip inside its instance, z the instance's place in the
// UltraServer; a chip's number is 4*row + col (docs/reference/torus.md#the-graph).
//
// Scope: arithmetic on positions. Which node holds a chip, and whether a link is up, are facts
// about a cluster and live elsewhere.
//
// Thread safety: all types are values without hidden state.

#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tahoma::torus {

enum class Axis : std::uint8_t { kX, kY, kZ };
inline constexpr std::array kAxes = {Axis::kX, Axis::kY, Axis::kZ};

enum class Direction : std::uint8_t { kMinus, kPlus };
inline constexpr std::array kDirections = {Direction::kMinus, Direction::kPlus};

constexpr Direction Opposite(Direction direction) {
  return direction == Direction::kPlus ? Direction::kMinus : Direction::kPlus;
}

// A position. Meaningful only together with the Shape that contains it.
struct Coord {
  std::uint8_t x = 0;
  std::uint8_t y = 0;
  std::uint8_t z = 0;

  constexpr std::uint8_t along(Axis axis) const {
    return axis == Axis::kX ? x : axis == Axis::kY ? y : z;
  }
  constexpr void set(Axis axis, int value) {
    (axis == Axis::kX ? x : axis == Axis::kY ? y : z) = static_cast<std::uint8_t>(value);
  }
  friend constexpr bool operator==(const Coord&, const Coord&) = default;
};

// "1,2,3".
std::string ToString(Coord coord);

// The number of a chip within a Shape, dense from 0, x fastest: the Neuron device number in the
// shape of an instance, device number + 16 * z in an UltraServer, and beyond a shape the number in
// a fabric of many (sim-node/emulator/link/fabric.h).
class ChipIndex {
 public:
  explicit constexpr ChipIndex(int value) : value_(value) {}
  constexpr int value() const { return value_; }
  friend constexpr auto operator<=>(ChipIndex, ChipIndex) = default;

 private:
  std::int32_t value_;
};

class Shape {
 public:
  // Largest extent of one axis.
  static constexpr int kExtentMax = 16;

  // One chip.
  constexpr Shape() : Shape(1, 1, 1) {}

  // Makes a shape that is known at compile time; a bad extent does not compile.
  template <int kXExtent, int kYExtent, int kZExtent>
  static constexpr Shape Of();

  // Makes a shape from outside data. Fails with kInvalidArgument, naming the axis, unless 1 <=
  // extent <= kExtentMax on all three.
  static absl::StatusOr<Shape> Create(int x_extent, int y_extent, int z_extent);

  // "AxB" or "AxBxC" in decimal. Fails with kInvalidArgument.
  static absl::StatusOr<Shape> Parse(std::string_view text);

  constexpr int extent(Axis axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  constexpr int chip_count() const { return extents_[0] * extents_[1] * extents_[2]; }
  constexpr bool Contains(Coord c) const {
    return c.x < extents_[0] && c.y < extents_[1] && c.z < extents_[2];
  }

  // Inverse of each other. The argument must lie inside the shape.
  ChipIndex IndexOf(Coord c) const;
  Coord CoordOf(ChipIndex chip) const;

  // The position a link away from `from`; nullopt along an axis of extent 1, which has no links.
  // Along an axis of extent 2 both directions name the same position.
  std::optional<Coord> Neighbour(Coord from, Axis axis, Direction direction) const;

  // Links on a shortest path. Symmetric; 0 only between a position and itself.
  int HopDistance(Coord a, Coord b) const;

  // The same extents in ascending order: equal for shapes that are rotations of each other.
  Shape Sorted() const;

  // "4x4x2".
  std::string ToString() const;

  friend constexpr bool operator==(const Shape&, const Shape&) = default;

 private:
  constexpr Shape(int x, int y, int z)
      : extents_{static_cast<std::uint8_t>(x), static_cast<std::uint8_t>(y),
                 static_cast<std::uint8_t>(z)} {}

  std::array<std::uint8_t, 3> extents_;
};

template <int kXExtent, int kYExtent, int kZExtent>
constexpr Shape Shape::Of() {
  static_assert(1 <= kXExtent && kXExtent <= kExtentMax);
  static_assert(1 <= kYExtent && kYExtent <= kExtentMax);
  static_assert(1 <= kZExtent && kZExtent <= kExtentMax);
  return Shape(kXExtent, kYExtent, kZExtent);
}

inline constexpr Shape kInstanceShape = Shape::Of<4, 4, 1>();     // trn2.48xlarge
inline constexpr Shape kUltraServerShape = Shape::Of<4, 4, 4>();  // four trn2u.48xlarge

}  // namespace tahoma::torus

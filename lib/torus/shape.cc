#include "lib/torus/shape.h"

#include <algorithm>
#include <charconv>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::torus {
namespace {

constexpr std::array<char, 3> kAxisNames = {'x', 'y', 'z'};

}  // namespace

std::string ToString(Coord coord) { return fmt::format("{},{},{}", coord.x, coord.y, coord.z); }

absl::StatusOr<Shape> Shape::Create(int x_extent, int y_extent, int z_extent) {
  const std::array<int, 3> extents = {x_extent, y_extent, z_extent};
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] < 1 || extents[i] > kExtentMax) {
      return InvalidArgument("extent {} is {}, not in [1, {}]", kAxisNames[i], extents[i],
                             kExtentMax);
    }
  }
  return Shape(x_extent, y_extent, z_extent);
}

absl::StatusOr<Shape> Shape::Parse(std::string_view text) {
  std::array<int, 3> extents = {1, 1, 1};
  std::size_t count = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (count < extents.size()) {
    const auto [next, error] = std::from_chars(at, end, extents[count]);
    if (error != std::errc() || next == at) break;
    ++count;
    at = next;
    if (at == end || *at != 'x') break;
    ++at;
  }
  if (count < 2 || at != end || text.back() == 'x') {
    return InvalidArgument("shape '{}' is not of the form AxB or AxBxC, such as 4x4x2",
                           text.substr(0, 32));
  }
  return Create(extents[0], extents[1], extents[2]);
}

ChipIndex Shape::IndexOf(Coord c) const {
  TAHOMA_CHECK(Contains(c));
  return ChipIndex(c.x + extents_[0] * (c.y + extents_[1] * c.z));
}

Coord Shape::CoordOf(ChipIndex chip) const {
  TAHOMA_CHECK(chip.value() < chip_count());
  const int plane = extents_[0] * extents_[1];
  return {.x = static_cast<std::uint8_t>(chip.value() % extents_[0]),
          .y = static_cast<std::uint8_t>(chip.value() % plane / extents_[0]),
          .z = static_cast<std::uint8_t>(chip.value() / plane)};
}

std::optional<Coord> Shape::Neighbour(Coord from, Axis axis, Direction direction) const {
  TAHOMA_CHECK(Contains(from));
  const int size = extent(axis);
  if (size == 1) return std::nullopt;
  const int step = direction == Direction::kPlus ? 1 : size - 1;
  from.set(axis, (from.along(axis) + step) % size);
  return from;
}

int Shape::HopDistance(Coord a, Coord b) const {
  TAHOMA_CHECK(Contains(a) && Contains(b));
  int hops = 0;
  for (const Axis axis : kAxes) {
    const int apart = std::abs(a.along(axis) - b.along(axis));
    hops += std::min(apart, extent(axis) - apart);
  }
  return hops;
}

Shape Shape::Sorted() const {
  Shape sorted = *this;
  std::sort(sorted.extents_.begin(), sorted.extents_.end());
  return sorted;
}

std::string Shape::ToString() const {
  return fmt::format("{}x{}x{}", extents_[0], extents_[1], extents_[2]);
}

}  // namespace tahoma::torus

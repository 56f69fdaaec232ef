#include "lib/torus/box.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::torus {
namespace {

constexpr std::array kSides = {1, 2, 4};

Coord Wrapped(const Shape& torus, Coord origin, Coord offset) {
  Coord at;
  for (const Axis axis : kAxes) {
    at.set(axis, (origin.along(axis) + offset.along(axis)) % torus.extent(axis));
  }
  return at;
}

template <typename Visit>
void ForEachCoord(const Shape& shape, const Visit& visit) {
  for (int i = 0; i < shape.chip_count(); ++i) visit(shape.CoordOf(ChipIndex(i)));
}

Box MakeBox(const Shape& torus, Coord origin, const Shape& size) {
  Box box{.origin = origin, .size = size, .mask = 0, .links = {}};
  ForEachCoord(size, [&](Coord offset) {
    box.mask |= MaskOf(torus.IndexOf(Wrapped(torus, origin, offset)));
  });
  ForEachCoord(size, [&](Coord offset) {
    const ChipIndex chip = torus.IndexOf(Wrapped(torus, origin, offset));
    for (const Axis axis : kAxes) {
      const auto next = torus.Neighbour(torus.CoordOf(chip), axis, Direction::kPlus);
      if (next && (box.mask & MaskOf(torus.IndexOf(*next))) != 0) {
        box.links.along(axis) |= MaskOf(chip);
      }
    }
  });
  return box;
}

// A side that spans its axis has one origin, 0; a shorter one begins anywhere and may wrap.
bool IsOrigin(const Shape& torus, Coord origin, const Shape& size) {
  return std::all_of(kAxes.begin(), kAxes.end(), [&](Axis axis) {
    return size.extent(axis) < torus.extent(axis) || origin.along(axis) == 0;
  });
}

// Ascending all-reduce time at large sizes: the cut bound favours a cube over a plank over a line,
// and X/Y links are twice as fast as Z (docs/reference/torus.md#boxes).
int Longest(const Shape& sorted) { return sorted.extent(Axis::kZ); }

}  // namespace

LinkMask LinkOf(const Shape& torus, ChipIndex chip, Axis axis, Direction direction) {
  const Coord from = torus.CoordOf(chip);
  const auto to = torus.Neighbour(from, axis, direction);
  TAHOMA_CHECK(to.has_value());
  LinkMask link;
  link.along(axis) = MaskOf(direction == Direction::kPlus ? chip : torus.IndexOf(*to));
  return link;
}

std::string Box::ToString() const {
  return fmt::format("{}+{}", size.ToString(), torus::ToString(origin));
}

BoxTable::BoxTable(const Shape& torus) : torus_(torus) {
  for (const int x : kSides) {
    for (const int y : kSides) {
      for (const int z : kSides) {
        const Shape size = *Shape::Create(x, y, z);
        if (x > torus.extent(Axis::kX) || y > torus.extent(Axis::kY) ||
            z > torus.extent(Axis::kZ)) {
          continue;
        }
        ForEachCoord(torus, [&](Coord origin) {
          if (IsOrigin(torus, origin, size)) boxes_.push_back(MakeBox(torus, origin, size));
        });
      }
    }
  }
  const auto key = [](const Shape& s) {
    return std::tuple(s.extent(Axis::kX), s.extent(Axis::kY), s.extent(Axis::kZ));
  };
  std::stable_sort(boxes_.begin(), boxes_.end(), [&](const Box& a, const Box& b) {
    return std::tuple(key(a.size.Sorted()), a.origin.z, a.origin.y, a.origin.x, key(a.size)) <
           std::tuple(key(b.size.Sorted()), b.origin.z, b.origin.y, b.origin.x, key(b.size));
  });
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    const Shape sorted = boxes_[i].size.Sorted();
    if (groups_.empty() || !(groups_.back().sorted == sorted)) groups_.push_back({sorted, i, i});
    groups_.back().end = i + 1;
  }
}

const BoxTable& BoxTable::Of(const Shape& torus) {
  static const BoxTable ultra_server(kUltraServerShape);
  static const BoxTable instance(kInstanceShape);
  static const BoxTable chip(Shape::Of<1, 1, 1>());
  static const BoxTable none;
  for (const BoxTable* table : {&ultra_server, &instance, &chip}) {
    if (table->torus() == torus) return *table;
  }
  return none;
}

std::span<const Box> BoxTable::Rotations(const Shape& shape) const {
  const Shape sorted = shape.Sorted();
  for (const Group& group : groups_) {
    if (group.sorted == sorted) {
      return std::span(boxes_).subspan(group.begin, group.end - group.begin);
    }
  }
  return {};
}

absl::StatusOr<Shape> ParseOffered(std::string_view text) {
  std::array<int, kAxes.size()> sides = {1, 1, 1};
  std::vector<std::string_view> wrong;
  std::size_t count = 0;
  constexpr std::size_t kTextMax = 16;
  for (std::size_t begin = 0; begin <= text.size(); ++count) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    const std::string_view side = text.substr(begin, end - begin);
    const bool digits =
        !side.empty() && side.find_first_not_of("0123456789") == std::string_view::npos;
    if (!digits || count == sides.size() || text.size() > kTextMax) {
      count = 0;
      break;
    }
    if (side == "1" || side == "2" || side == "4") {
      sides[count] = side.front() - '0';
    } else {
      wrong.push_back(side);
    }
    begin = end + 1;
  }
  if (count < 2) return InvalidArgument("must be of the form AxB or AxBxC, such as 4x4x2");
  if (!wrong.empty()) {
    return InvalidArgument("each side must be 1, 2 or 4; {} {} not", fmt::join(wrong, " and "),
                           wrong.size() == 1 ? "is" : "are");
  }
  return Shape::Create(sides[0], sides[1], sides[2]);
}

std::vector<Shape> ShapesOf(int chips) {
  std::vector<Shape> shapes;
  for (const int a : kSides) {
    for (const int b : kSides) {
      for (const int c : kSides) {
        if (a <= b && b <= c && a * b * c == chips) shapes.push_back(*Shape::Create(a, b, c));
      }
    }
  }
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const Shape& a, const Shape& b) { return Longest(a) < Longest(b); });
  return shapes;
}

}  // namespace tahoma::torus

// The arithmetic against slow oracles on every position of small shapes; hardware facts by name.

#include "lib/torus/shape.h"

#include <gtest/gtest.h>

#include <queue>
#include <set>
#include <string>
#include <vector>

namespace tahoma::torus {
namespace {

std::vector<Coord> Neighbours(const Shape& shape, Coord from) {
  std::vector<Coord> found;
  for (const Axis axis : kAxes) {
    for (const Direction direction : kDirections) {
      if (const auto to = shape.Neighbour(from, axis, direction)) found.push_back(*to);
    }
  }
  return found;
}

std::vector<int> HopsBySearch(const Shape& shape, Coord from) {
  std::vector<int> hops(static_cast<std::size_t>(shape.chip_count()), -1);
  std::queue<Coord> frontier;
  const auto slot = [&](Coord c) -> int& {
    return hops[static_cast<std::size_t>(shape.IndexOf(c).value())];
  };
  slot(from) = 0;
  frontier.push(from);
  while (!frontier.empty()) {
    const Coord at = frontier.front();
    frontier.pop();
    for (const Coord to : Neighbours(shape, at)) {
      if (slot(to) >= 0) continue;
      slot(to) = slot(at) + 1;
      frontier.push(to);
    }
  }
  return hops;
}

class EveryShape : public ::testing::TestWithParam<Shape> {
 protected:
  std::vector<Coord> AllCoords() const {
    std::vector<Coord> coords;
    for (int i = 0; i < GetParam().chip_count(); ++i) {
      coords.push_back(GetParam().CoordOf(ChipIndex(i)));
    }
    return coords;
  }
};

TEST_P(EveryShape, NumbersChipsDenselyAndReversibly) {
  int expected = 0;
  for (const Coord c : AllCoords()) {
    EXPECT_TRUE(GetParam().Contains(c));
    EXPECT_EQ(GetParam().IndexOf(c), ChipIndex(expected++));
  }
}

TEST_P(EveryShape, SteppingBackReturnsToTheStart) {
  for (const Coord c : AllCoords()) {
    for (const Axis axis : kAxes) {
      for (const Direction direction : kDirections) {
        const auto there = GetParam().Neighbour(c, axis, direction);
        if (!there) continue;
        EXPECT_EQ(GetParam().Neighbour(*there, axis, Opposite(direction)), c);
      }
    }
  }
}

TEST_P(EveryShape, HopDistanceAgreesWithSearchOverLinks) {
  for (const Coord from : AllCoords()) {
    const std::vector<int> hops = HopsBySearch(GetParam(), from);
    for (const Coord to : AllCoords()) {
      EXPECT_EQ(GetParam().HopDistance(from, to),
                hops[static_cast<std::size_t>(GetParam().IndexOf(to).value())]);
    }
  }
}

TEST_P(EveryShape, IsReadBackFromItsText) {
  EXPECT_EQ(*Shape::Parse(GetParam().ToString()), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Torus, EveryShape,
                         ::testing::Values(Shape::Of<1, 1, 1>(), Shape::Of<2, 1, 1>(),
                                           Shape::Of<3, 2, 1>(), kInstanceShape, kUltraServerShape,
                                           Shape::Of<5, 4, 3>()),
                         [](const auto& shape) { return "Of" + shape.param.ToString(); });

TEST(ShapeTest, AnInstanceChipHasTheNeighboursOfTheKernelDriversTable) {
  // Device 5: west 4, east 6, north 1, south 9 (aws-neuron-driver v3/neuron_dhal_v3.c).
  std::set<int> ids;
  for (const Coord c : Neighbours(kInstanceShape, kInstanceShape.CoordOf(ChipIndex(5)))) {
    ids.insert(kInstanceShape.IndexOf(c).value());
  }
  EXPECT_EQ(ids, (std::set<int>{1, 4, 6, 9}));
  EXPECT_EQ(kInstanceShape.Neighbour({}, Axis::kZ, Direction::kPlus), std::nullopt);
}

TEST(ShapeTest, AnUltraServerChipHasSixDistinctNeighbours) {
  std::set<ChipIndex> distinct;
  for (const Coord c : Neighbours(kUltraServerShape, {.x = 1, .y = 2, .z = 3})) {
    distinct.insert(kUltraServerShape.IndexOf(c));
  }
  EXPECT_EQ(distinct.size(), 6U);
}

TEST(ShapeTest, TheFarthestChipOfAnUltraServerIsSixHopsAway) {
  EXPECT_EQ(kUltraServerShape.HopDistance({}, {.x = 2, .y = 2, .z = 2}), 6);
}

TEST(ShapeTest, CreateRejectsAnExtentOutsideTheBoundAndNamesTheAxis) {
  struct Case {
    int x, y, z;
    std::string reason;
  };
  for (const Case& c : std::vector<Case>{{0, 4, 4, "extent x is 0, not in [1, 16]"},
                                         {4, -1, 4, "extent y is -1, not in [1, 16]"},
                                         {4, 4, 17, "extent z is 17, not in [1, 16]"}}) {
    const absl::StatusOr<Shape> shape = Shape::Create(c.x, c.y, c.z);
    EXPECT_EQ(shape.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(shape.status().message(), c.reason);
  }
}

TEST(ShapeTest, TextThatIsNoShapeIsRefused) {
  EXPECT_EQ(*Shape::Parse("2x4"), (Shape::Of<2, 4, 1>()));
  for (const char* text : {"", "4", "x", "4x", "4xx4", "4x4x4x4", "4 x 4", "4x4x", "-4x4", "ax4",
                           "4x99999999999", "4x0x4", "4x4x17"}) {
    EXPECT_EQ(Shape::Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(ShapeDeathTest, AskingForThePlaceOfAForeignCoordIsAProgrammersError) {
  EXPECT_DEATH((void)kInstanceShape.IndexOf({.z = 1}), "CHECK failed: Contains");
}

}  // namespace
}  // namespace tahoma::torus

// Boxes against a brute-force oracle: every origin and size, chip by chip.

#include "lib/torus/box.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tahoma::torus {
namespace {

class EveryTorus : public ::testing::TestWithParam<Shape> {
 protected:
  const BoxTable& table() const { return BoxTable::Of(GetParam()); }
};

TEST_P(EveryTorus, HoldsEachSubcubeOnce) {
  // 9 intervals (4 + 4 + 1) per axis of 4, one per axis of 1 (docs/reference/torus.md#the-graph).
  std::size_t expected = 1;
  for (const Axis axis : kAxes) expected *= GetParam().extent(axis) == 4 ? 9U : 1U;
  std::set<ChipMask> masks;
  for (const Box& box : table().all()) masks.insert(box.mask);
  EXPECT_EQ(table().all().size(), expected);
  EXPECT_EQ(masks.size(), expected);
}

TEST_P(EveryTorus, ABoxHasTheChipsThatItsSizeSays) {
  for (const Box& box : table().all()) {
    EXPECT_EQ(ChipCount(box.mask), box.size.chip_count()) << box.ToString();
    EXPECT_NE(box.mask & MaskOf(GetParam().IndexOf(box.origin)), 0U) << box.ToString();
  }
}

TEST_P(EveryTorus, InternalLinksAreThoseWithBothEndsInside) {
  for (const Box& box : table().all()) {
    LinkMask expected;
    for (int i = 0; i < GetParam().chip_count(); ++i) {
      for (const Axis axis : kAxes) {
        const auto to =
            GetParam().Neighbour(GetParam().CoordOf(ChipIndex(i)), axis, Direction::kPlus);
        if (!to) continue;
        const ChipMask ends = MaskOf(ChipIndex(i)) | MaskOf(GetParam().IndexOf(*to));
        if ((ends & box.mask) == ends) expected.along(axis) |= MaskOf(ChipIndex(i));
      }
    }
    EXPECT_EQ(box.links, expected) << box.ToString();
  }
}

TEST_P(EveryTorus, DisjointBoxesShareNoLink) {
  for (const Box& a : table().all()) {
    for (const Box& b : table().all()) {
      if ((a.mask & b.mask) == 0) {
        EXPECT_FALSE(a.links.Intersects(b.links));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Torus, EveryTorus,
                         ::testing::Values(Shape::Of<1, 1, 1>(), kInstanceShape, kUltraServerShape),
                         [](const auto& shape) { return "Of" + shape.param.ToString(); });

TEST(BoxTest, PlacementCountsAreThoseOfTheLiterature) {
  const BoxTable& instance = BoxTable::Of(kInstanceShape);
  const BoxTable& ultra = BoxTable::Of(kUltraServerShape);
  struct Case {
    const char* shape;
    std::size_t in_instance, in_ultra_server;
  };
  // docs/reference/torus.md#boxes
  for (const Case& c :
       {Case{"1x1", 16, 64}, Case{"2x1", 32, 192}, Case{"4x1", 8, 48}, Case{"2x2", 16, 192},
        Case{"2x4", 8, 96}, Case{"2x2x2", 0, 64}, Case{"4x4", 1, 12}, Case{"4x2x2", 0, 48},
        Case{"4x4x2", 0, 12}, Case{"4x4x4", 0, 1}}) {
    const Shape shape = *Shape::Parse(c.shape);
    EXPECT_EQ(instance.Rotations(shape).size(), c.in_instance) << c.shape;
    EXPECT_EQ(ultra.Rotations(shape).size(), c.in_ultra_server) << c.shape;
  }
}

TEST(BoxTest, WholeTorusHasAllItsLinks) {
  EXPECT_EQ(BoxTable::Of(kInstanceShape).Rotations(*Shape::Parse("4x4"))[0].links.count(), 32);
  EXPECT_EQ(BoxTable::Of(kUltraServerShape).Rotations(*Shape::Parse("4x4x4"))[0].links.count(),
            192);
}

TEST(BoxTest, ALinkHasOneNameFromBothEnds) {
  const LinkMask east = LinkOf(kUltraServerShape, ChipIndex(3), Axis::kX, Direction::kPlus);
  const LinkMask west = LinkOf(kUltraServerShape, ChipIndex(0), Axis::kX, Direction::kMinus);
  EXPECT_EQ(east, west);
  EXPECT_EQ(east.count(), 1);
}

TEST(BoxTest, OtherSidesAreRefusedWithTheSideNamed) {
  EXPECT_EQ(*ParseOffered("4x2x1"), (Shape::Of<4, 2, 1>()));
  EXPECT_EQ(*ParseOffered("2x4"), (Shape::Of<2, 4, 1>()));
  EXPECT_EQ(ParseOffered("3x5x2").status().message(),
            "each side must be 1, 2 or 4; 3 and 5 are not");
}

TEST(BoxTest, ShapesOfAChipCountBeginWithTheMostCompact) {
  EXPECT_EQ(ShapesOf(4).front().ToString(), "1x2x2");
  EXPECT_EQ(ShapesOf(8).front().ToString(), "2x2x2");
  EXPECT_EQ(ShapesOf(16).size(), 2U);
  EXPECT_EQ(ShapesOf(64).front().ToString(), "4x4x4");
  EXPECT_TRUE(ShapesOf(12).empty());
  EXPECT_TRUE(ShapesOf(0).empty());
}

}  // namespace
}  // namespace tahoma::torus

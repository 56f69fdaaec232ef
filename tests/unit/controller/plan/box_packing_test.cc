#include "controller/plan/box_packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

using torus::BoxTable;
using torus::ChipMask;

std::vector<ChipMask> BoxesOf(const torus::Shape& domain, const torus::Shape& shape) {
  std::vector<ChipMask> masks;
  for (const torus::Box& box : BoxTable::Of(domain).Rotations(shape)) masks.push_back(box.mask);
  return masks;
}

torus::Shape ShapeOf(int x, int y, int z) { return *torus::Shape::Create(x, y, z); }

// Tries every subset.
int SlowMost(const std::vector<ChipMask>& boxes, std::size_t from, ChipMask free) {
  int most = 0;
  for (std::size_t i = from; i < boxes.size(); ++i) {
    if ((boxes[i] & ~free) == 0) {
      most = std::max(most, 1 + SlowMost(boxes, i + 1, free & ~boxes[i]));
    }
  }
  return most;
}

TEST(BoxPackingTest, FindsTheMostOnAnInstanceWithAnyChipsFree) {
  for (const torus::Shape& shape : {ShapeOf(2, 2, 1), ShapeOf(4, 1, 1), ShapeOf(2, 1, 1)}) {
    const std::vector<ChipMask> boxes = BoxesOf(torus::kInstanceShape, shape);
    Rng rng(1);
    for (int i = 0; i < 300; ++i) {
      const ChipMask free = rng.Next() & rng.Next() & 0xffff;
      EXPECT_EQ(MostBoxes(boxes, free, 16), SlowMost(boxes, 0, free))
          << shape.ToString() << " " << free;
    }
  }
}

TEST(BoxPackingTest, AnEmptyUltraServerHoldsAsManyAsItsChipsAllow) {
  for (const torus::Shape& shape :
       {ShapeOf(4, 4, 4), ShapeOf(4, 4, 1), ShapeOf(2, 2, 4), ShapeOf(2, 2, 2), ShapeOf(2, 2, 1),
        ShapeOf(4, 1, 1), ShapeOf(2, 1, 1), ShapeOf(1, 1, 1)}) {
    const std::vector<ChipMask> boxes = BoxesOf(torus::kUltraServerShape, shape);
    EXPECT_EQ(MostBoxes(boxes, ~ChipMask{0}, 64), 64 / shape.chip_count()) << shape.ToString();
  }
}

TEST(BoxPackingTest, StopsAtEnough) {
  const std::vector<ChipMask> boxes = BoxesOf(torus::kUltraServerShape, ShapeOf(2, 2, 1));
  EXPECT_EQ(MostBoxes(boxes, ~ChipMask{0}, 3), 3);
  EXPECT_EQ(MostBoxes(boxes, ~ChipMask{0}, 0), 0);
  EXPECT_EQ(MostBoxes(boxes, 0, 3), 0);
  EXPECT_EQ(MostBoxes({}, ~ChipMask{0}, 3), 0);
}

// The packing that it found exists, also where a search to the end would take too long.
TEST(BoxPackingTest, NeverPromisesMoreThanChipsCanBear) {
  const std::vector<ChipMask> boxes = BoxesOf(torus::kUltraServerShape, ShapeOf(2, 2, 1));
  Rng rng(2);
  for (int i = 0; i < 20; ++i) {
    const ChipMask free = rng.Next();
    const int most = MostBoxes(boxes, free, 16);
    EXPECT_GT(most, 0);
    EXPECT_LE(most, std::popcount(free) / 4);
  }
}

}  // namespace
}  // namespace tahoma::controller

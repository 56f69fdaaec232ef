// Packed trees: each spans the set, is low, and together they load the cables evenly.

#include "sim-node/collective/algorithms/packing.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <vector>

#include "sim-node/collective/plan/plan.h"
#include "tests/unit/sim-node/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::UltraServer;
using torus::ChipIndex;
using torus::ChipMask;

constexpr ChipMask kSquareOfThree = 0x0777;

std::optional<TreePacking> Packed(ChipMask mask, const TorusLinks& links, std::size_t count) {
  return TreePacking::Of(SetOf(MembersOf(mask), links), links, count);
}

TEST(PackingTest, EveryTreeSpansTheSetLevelByLevelOverCablesOfIts) {
  const auto packing = Packed(kSquareOfThree, Instance(), 40);
  ASSERT_TRUE(packing.has_value());
  ASSERT_GE(packing->trees().size(), 36U);
  ASSERT_LE(packing->trees().size(), 40U);
  std::vector<std::uint64_t> uses(packing->cables().size());
  for (const TreePacking::Tree& tree : packing->trees()) {
    ASSERT_EQ(tree.size(), 8U);
    std::vector<std::size_t> reached = {tree.front().parent};
    std::size_t parent_at = 0;
    for (const TreePacking::Branch& branch : tree) {
      while (reached.at(parent_at) != branch.parent) ++parent_at;  // in the order of the parents
      EXPECT_EQ(std::ranges::count(reached, branch.chip), 0);
      reached.push_back(branch.chip);
      const TreePacking::Cable& cable = packing->cables().at(branch.cable);
      EXPECT_EQ(std::set({cable.one, cable.other}), std::set({branch.chip, branch.parent}));
      ++uses[branch.cable];
    }
  }
  for (std::size_t i = 0; i < uses.size(); ++i) EXPECT_EQ(packing->cables()[i].trees, uses[i]);
}

// 8 of the 12 cables of a square of three are in a tree, so each carries two thirds of them.
TEST(PackingTest, ManyTreesLoadTheCablesOfASquareOfThreeEvenly) {
  const auto packing = Packed(kSquareOfThree, Instance(), 256);
  ASSERT_TRUE(packing.has_value());
  ASSERT_EQ(packing->cables().size(), 12U);
  for (const TreePacking::Cable& cable : packing->cables()) {
    EXPECT_LE(static_cast<double>(cable.trees),
              static_cast<double>(packing->trees().size()) * 2 / 3.0 * 1.015);
  }
}

// Without a chip, the one opposite alone is no more than five links from all others.
TEST(PackingTest, TreesOfAnUltraServerAreHardlyHigherThanTheyMustBe) {
  for (const ChipMask mask : {kAllChips, kAllChips & ~ChipMask{1}}) {
    const auto packing = Packed(mask, UltraServer(), 200);
    ASSERT_TRUE(packing.has_value());
    std::size_t sum = 0;
    std::set<std::size_t> roots;
    for (const TreePacking::Tree& tree : packing->trees()) {
      EXPECT_GE(tree.back().depth, mask == kAllChips ? 6U : 5U);
      sum += tree.back().depth;
      roots.insert(tree.front().parent);
    }
    EXPECT_LE(static_cast<double>(sum), 6.7 * static_cast<double>(packing->trees().size()));
    EXPECT_GE(roots.size(), 7U);
  }
}

TEST(PackingTest, ThereAreNoTreesForWhoIsCutOff) {
  TorusLinks links = Instance();
  for (const torus::Axis axis : {torus::Axis::kX, torus::Axis::kY}) {
    for (const torus::Direction direction : torus::kDirections) {
      // One direction is enough: a cable sums up in one and spreads in the other.
      ASSERT_TRUE(links.SetPermille(TorusLinks::IdOf(ChipIndex(0), axis, direction), 0).ok());
    }
  }
  EXPECT_FALSE(Packed(0xffff, links, 4).has_value());
  EXPECT_TRUE(Packed(0xfffe, links, 4).has_value());
}

}  // namespace
}  // namespace tahoma::sim

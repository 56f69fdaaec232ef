// The order of packed trees: any number of the first ones use the cables evenly.

#include "sim-node/emulator/collective/algorithms/tree_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "lib/base/rng.h"
#include "sim-node/emulator/collective/plan/plan.h"
#include "tests/unit/sim-node/emulator/collective/algorithms/packings.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::UltraServer;
using torus::ChipMask;

TreePacking Packed(ChipMask mask, std::size_t count) {
  return testing::Packed(mask, UltraServer(), count);
}

std::vector<std::size_t> Numbers(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

// The most trees by which a cable of the highest rate is ahead of its share after some of them, on
// average.
double Unevenness(const TreePacking& packing, const std::vector<std::size_t>& order) {
  const auto all = static_cast<double>(packing.trees().size());
  std::vector<double> trees(packing.cables().size());
  double sum = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const auto& branch : packing.trees()[order[i]]) ++trees[branch.cable];
    double most = 0;
    for (std::size_t cable = 0; cable < trees.size(); ++cable) {
      const TreePacking::Cable& one = packing.cables()[cable];
      const double share = static_cast<double>(one.trees) * static_cast<double>(i + 1) / all;
      most = std::max(most, (trees[cable] - share) * static_cast<double>(packing.fastest()) /
                                static_cast<double>(one.rate));
    }
    sum += most;
  }
  return sum / all;
}

TEST(TreeOrderTest, EveryTreeComesOnce) {
  for (const std::size_t count : {1U, 19U, 45U, 200U}) {
    const TreePacking packing = Packed(0xffff'00ff'0fff'ffff, count);
    const std::size_t trees = packing.trees().size();
    std::vector<std::size_t> order = EvenOrder(packing, std::vector<std::size_t>(trees));
    std::ranges::sort(order);
    EXPECT_EQ(order, Numbers(trees));
  }
}

TEST(TreeOrderTest, TheFirstTreesUseCablesMoreEvenlyThanInARandomOrder) {
  Rng rng(7);
  for (const ChipMask mask : {kAllChips, kAllChips & ~ChipMask{0x8042}, ChipMask{0x7fff'ffff}}) {
    const TreePacking packing = Packed(mask, 200);
    const std::size_t trees = packing.trees().size();
    const double even = Unevenness(packing, EvenOrder(packing, std::vector<std::size_t>(trees)));
    std::vector<std::size_t> other = Numbers(trees);
    for (std::size_t i = trees; i > 1; --i) std::swap(other[i - 1], other[rng.Below(i)]);
    EXPECT_LT(even * 2, Unevenness(packing, other));
  }
}

// In a random order 32 of the 40 would.
TEST(TreeOrderTest, WhatKeepsLinksWaitingIsNeitherFirstNorLast) {
  const TreePacking packing = Packed(kAllChips & ~ChipMask{0x0222}, 480);
  const std::size_t trees = packing.trees().size();
  std::vector<std::size_t> lateness(trees, 1);
  for (std::size_t tree = 3; tree < trees; tree += 5) lateness[tree] = 0;
  const std::vector<std::size_t> order = EvenOrder(packing, lateness);
  const auto late = [&](std::size_t begin, std::size_t end) {
    std::size_t count = 0;
    for (std::size_t i = begin; i < end; ++i) count += lateness[order[i]];
    return count;
  };
  EXPECT_LE(late(0, 20) + late(trees - 20, trees), 10U);
  EXPECT_GE(late(20, trees - 20), (trees - 40) * 3 / 4);
}

TEST(TreeOrderTest, TreesAreArrangedByTheirNumbers) {
  TreePacking packing = Packed(0xff, 4);
  const std::vector<TreePacking::Tree> before = packing.trees();
  std::vector<std::size_t> order = Numbers(before.size());
  std::ranges::reverse(order);
  packing.Arrange(order);
  for (std::size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(packing.trees()[i].front().parent, before[order[i]].front().parent);
    EXPECT_EQ(packing.trees()[i].size(), before[order[i]].size());
  }
}

}  // namespace
}  // namespace tahoma::sim

// Helpers for tests of packed trees.
//
//   const TreePacking packing = testing::Packed(kAllChips, UltraServer(), /*count=*/200);
//   testing::ExpectSpanningTrees(packing);

#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "sim-node/emulator/collective/algorithms/packing.h"
#include "sim-node/emulator/collective/plan/plan.h"

namespace tahoma::sim::testing {

// About so many trees of chips that cables join.
inline TreePacking Packed(torus::ChipMask mask, const TorusLinks& links, std::size_t count) {
  auto packing = TreePacking::Of(SetOf(MembersOf(mask), links), links, count);
  EXPECT_TRUE(packing.has_value());
  return *std::move(packing);
}

// Each tree reaches each chip of the set once, and the cables count the trees that use them.
inline void ExpectSpanningTrees(const TreePacking& packing) {
  std::vector<std::uint64_t> uses(packing.cables().size());
  for (const TreePacking::Tree& tree : packing.trees()) {
    ASSERT_EQ(tree.size() + 1, packing.chips().size());
    torus::ChipMask reached = torus::ChipMask{1} << tree.front().parent;
    for (const TreePacking::Branch& branch : tree) {
      EXPECT_NE(reached >> branch.parent & 1, 0U);
      EXPECT_EQ(reached >> branch.chip & 1, 0U);
      reached |= torus::ChipMask{1} << branch.chip;
      ++uses[branch.cable];
    }
  }
  for (std::size_t i = 0; i < uses.size(); ++i) EXPECT_EQ(packing.cables()[i].trees, uses[i]);
}

}  // namespace tahoma::sim::testing

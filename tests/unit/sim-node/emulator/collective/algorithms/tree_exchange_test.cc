// Spanning trees that change by one branch, and exchanges between them: every tree goes on to span
// its set, and no cable carries more than its share.

#include "sim-node/emulator/collective/algorithms/tree_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::sim {
namespace {

// Chips and the cables between them: a path through all, and as many more cables as are wanted.
std::vector<TreeCable> RandomCables(Rng& rng, std::size_t chips, std::size_t more) {
  std::vector<TreeCable> cables;
  for (std::size_t chip = 1; chip < chips; ++chip) {
    cables.push_back({.one = chip - 1, .other = chip, .rate = 1, .trees = 0});
  }
  while (cables.size() < chips - 1 + more) {
    const std::size_t one = rng.Below(chips);
    const std::size_t other = rng.Below(chips);
    if (one != other) cables.push_back({.one = one, .other = other, .rate = 1, .trees = 0});
  }
  return cables;
}

// Joins chips to a tree over random cables that lead out of it, and counts the tree at its cables.
std::vector<TreeBranch> RandomBranches(Rng& rng, std::vector<TreeCable>& cables,
                                       std::size_t chips) {
  std::vector<TreeBranch> branches;
  std::vector<std::size_t> depth(chips, chips);
  depth[rng.Below(chips)] = 0;
  while (branches.size() + 1 < chips) {
    const std::size_t cable = rng.Below(cables.size());
    for (const std::size_t chip : {cables[cable].one, cables[cable].other}) {
      const std::size_t parent = cables[cable].FarEnd(chip);
      if (depth[chip] != chips || depth[parent] == chips) continue;
      depth[chip] = depth[parent] + 1;
      branches.push_back({.chip = chip, .parent = parent, .cable = cable, .depth = depth[chip]});
      ++cables[cable].trees;
      break;
    }
  }
  return branches;
}

void ExpectThatItSpans(const SpanningTree& tree, const std::vector<TreeCable>& cables,
                       std::size_t chips) {
  const std::vector<TreeBranch> branches = tree.Branches();
  ASSERT_EQ(branches.size(), chips - 1);
  std::vector<std::size_t> reached = {tree.root()};
  std::vector<std::size_t> depth(chips);
  std::size_t parent_at = 0;
  for (const TreeBranch& branch : branches) {
    while (reached.at(parent_at) != branch.parent) ++parent_at;  // in the order of the parents
    ASSERT_EQ(std::ranges::count(reached, branch.chip), 0);
    reached.push_back(branch.chip);
    EXPECT_EQ(branch.depth, depth[branch.parent] + 1);
    depth[branch.chip] = branch.depth;
    const TreeCable& cable = cables.at(branch.cable);
    EXPECT_EQ(std::set({cable.one, cable.other}), std::set({branch.chip, branch.parent}));
  }
  EXPECT_EQ(tree.Height(), branches.back().depth);
}

TEST(SpanningTreeTest, AnotherCableJoinsTheTwoPartsAtTheHeightThatWasForetold) {
  constexpr std::size_t kChips = 12;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    std::vector<TreeCable> cables = RandomCables(rng, kChips, 14);
    SpanningTree tree(cables, RandomBranches(rng, cables, kChips));
    ExpectThatItSpans(tree, cables, kChips);
    for (int change = 0; change < 30; ++change) {
      const std::size_t cable = rng.Below(cables.size());
      const std::size_t other = rng.Below(cables.size());
      if (!tree.Uses(cable) || tree.Uses(other)) continue;
      const torus::ChipMask side = tree.SideOf(cable);
      EXPECT_EQ(side >> tree.root() & 1, 0U);
      if ((side >> cables[other].one & 1) == (side >> cables[other].other & 1)) continue;
      const std::size_t height = tree.HeightWith(cable, other);
      tree.Replace(cable, other);
      EXPECT_FALSE(tree.Uses(cable));
      EXPECT_TRUE(tree.Uses(other));
      EXPECT_EQ(tree.Height(), height);
      ExpectThatItSpans(tree, cables, kChips);
    }
  }
}

std::vector<std::uint64_t> UsesOf(const std::vector<SpanningTree>& trees, std::size_t cables) {
  std::vector<std::uint64_t> uses(cables);
  for (const SpanningTree& tree : trees) {
    for (std::size_t cable = 0; cable < cables; ++cable) uses[cable] += tree.Uses(cable) ? 1U : 0U;
  }
  return uses;
}

// The cables hold trees that were dealt beforehand, so a packing within these numbers exists; the
// trees that are given are others.
TEST(TreeExchangeTest, TreesComeToAPackingThatExists) {
  constexpr std::size_t kTrees = 20;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    const std::size_t chips = 4 + rng.Below(14);
    std::vector<TreeCable> cables = RandomCables(rng, chips, chips);
    for (std::size_t i = 0; i < kTrees; ++i) RandomBranches(rng, cables, chips);
    std::vector<std::uint64_t> most;
    for (TreeCable& cable : cables) most.push_back(std::exchange(cable.trees, 0));
    std::vector<SpanningTree> trees;
    for (std::size_t i = 0; i < kTrees; ++i) {
      trees.emplace_back(cables, RandomBranches(rng, cables, chips));
    }
    EvenOut(most, /*highest=*/64, trees, cables);
    for (const SpanningTree& tree : trees) ExpectThatItSpans(tree, cables, chips);
    const std::vector<std::uint64_t> uses = UsesOf(trees, cables.size());
    for (std::size_t cable = 0; cable < cables.size(); ++cable) {
      EXPECT_EQ(cables[cable].trees, uses[cable]);
      EXPECT_LE(uses[cable], most[cable]) << "seed " << seed;
    }
  }
}

TEST(TreeExchangeTest, NoTreeBecomesHigherThanItMay) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    constexpr std::size_t kChips = 16;
    constexpr std::size_t kHighest = 5;
    std::vector<TreeCable> cables = RandomCables(rng, kChips, 24);
    std::vector<SpanningTree> trees;
    std::vector<std::size_t> before;
    for (std::size_t i = 0; i < 30; ++i) {
      trees.emplace_back(cables, RandomBranches(rng, cables, kChips));
      before.push_back(trees.back().Height());
    }
    const auto fullest = [&] { return std::ranges::max(UsesOf(trees, cables.size())); };
    const std::uint64_t least = 30 * (kChips - 1) / cables.size() + 1;
    const std::uint64_t fullest_before = fullest();
    EvenOut(std::vector<std::uint64_t>(cables.size(), least), kHighest, trees, cables);
    EXPECT_LE(fullest(), fullest_before);
    for (std::size_t i = 0; i < trees.size(); ++i) {
      EXPECT_LE(trees[i].Height(), std::max(before[i], kHighest));
    }
  }
}

// Two trees use the only cable to a chip, as they must.
TEST(TreeExchangeTest, ACableThatAllTreesNeedStaysOverFull) {
  std::vector<TreeCable> cables = {{.one = 0, .other = 1, .rate = 1, .trees = 2}};
  const std::vector<TreeBranch> branch = {{.chip = 1, .parent = 0, .cable = 0, .depth = 1}};
  std::vector<SpanningTree> trees(2, SpanningTree(cables, branch));
  EvenOut({1}, 64, trees, cables);
  EXPECT_EQ(cables[0].trees, 2U);
}

// The first tree has both chips at the cables that the second one needs. Only when it takes the
// cable between them does another one become free.
TEST(TreeExchangeTest, AFullCableIsTakenWhenAnotherTreeLetsGoOfIt) {
  // A triangle 0, 1, 2 with a second cable between 0 and 1, and a chip 3 at 2 and at 0.
  std::vector<TreeCable> cables = {{.one = 0, .other = 1, .rate = 1, .trees = 2},
                                   {.one = 1, .other = 2, .rate = 1, .trees = 1},
                                   {.one = 0, .other = 2, .rate = 1, .trees = 1},
                                   {.one = 2, .other = 3, .rate = 1, .trees = 2},
                                   {.one = 0, .other = 3, .rate = 1, .trees = 0}};
  std::vector<SpanningTree> trees;
  trees.emplace_back(cables, std::vector<TreeBranch>{{.chip = 1, .parent = 0, .cable = 0},
                                                     {.chip = 2, .parent = 1, .cable = 1},
                                                     {.chip = 3, .parent = 2, .cable = 3}});
  trees.emplace_back(cables, std::vector<TreeBranch>{{.chip = 1, .parent = 0, .cable = 0},
                                                     {.chip = 2, .parent = 0, .cable = 2},
                                                     {.chip = 3, .parent = 2, .cable = 3}});
  EvenOut({1, 1, 1, 2, 1}, 64, trees, cables);
  for (const SpanningTree& tree : trees) ExpectThatItSpans(tree, cables, 4);
  EXPECT_EQ(cables[0].trees, 1U);
  EXPECT_LE(cables[1].trees, 1U);
  EXPECT_LE(cables[2].trees, 1U);
  EXPECT_EQ(cables[4].trees, 1U);
}

}  // namespace
}  // namespace tahoma::sim

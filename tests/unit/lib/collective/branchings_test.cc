// Packed trees of a broadcast: each is a tree, together they respect every link and come as close
// to the bound as all parts of a small set, searched one by one, allow.

#include "lib/collective/branchings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/collective/cuts.h"
#include "tests/unit/lib/collective/support.h"

namespace tahoma::collective {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::ChipMask;
using torus::Direction;

// The least rate into any part without the root, by a search of all parts.
std::uint64_t LeastRateInto(const RandomSet& set, int root) {
  const ChipMask others = set.members & ~(ChipMask{1} << root);
  std::uint64_t least = ~std::uint64_t{0};
  for (ChipMask part = others; part != 0; part = (part - 1) & others) {
    least = std::min(least, RateInto(set.links, part, set.members));
  }
  return least;
}

// Links from the root to each chip over links that are up.
std::map<int, std::size_t> DistancesFrom(int root, const DomainLinks& links, ChipMask members) {
  std::map<int, std::size_t> distance = {{root, 0}};
  std::vector<int> queue = {root};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (int port = 0; port < kPortsPerChip; ++port) {
      const auto arc = static_cast<Arc>(queue[i] * kPortsPerChip + port);
      if (links.rate(arc) == 0 || (members >> links.to(arc) & 1) == 0) continue;
      if (distance.emplace(links.to(arc), distance[queue[i]] + 1).second) {
        queue.push_back(links.to(arc));
      }
    }
  }
  return distance;
}

// Every tree reaches every member once, from a parent that it has reached before.
void ExpectTrees(const std::vector<Branching>& trees, ChipMask members, int root) {
  for (const Branching& tree : trees) {
    EXPECT_GT(tree.rate, 0U);
    std::map<int, std::size_t> depth = {{root, 0}};
    for (const Branch& branch : tree.branches) {
      ASSERT_TRUE(depth.contains(branch.parent));
      EXPECT_EQ(branch.depth, depth[branch.parent] + 1);
      EXPECT_TRUE(depth.emplace(branch.chip, branch.depth).second);
      EXPECT_NE(members >> branch.chip & 1, 0U);
    }
    EXPECT_EQ(depth.size(), static_cast<std::size_t>(std::popcount(members)));
  }
}

// No pair of neighbours carries more than the links between them.
void ExpectNoLinkOverloaded(const std::vector<Branching>& trees, const DomainLinks& links) {
  std::map<std::pair<int, int>, std::uint64_t> load;
  for (const Branching& tree : trees) {
    for (const Branch& branch : tree.branches) load[{branch.parent, branch.chip}] += tree.rate;
  }
  std::map<std::pair<int, int>, std::uint64_t> rate;
  for (int arc = 0; arc < links.arc_count(); ++arc) {
    const auto at = static_cast<Arc>(arc);
    if (links.rate(at) != 0) rate[{arc / kPortsPerChip, links.to(at)}] += links.rate(at);
  }
  for (const auto& [ends, carried] : load) {
    ASSERT_TRUE(rate.contains(ends));
    EXPECT_LE(carried, rate[ends]);
  }
}

TEST(BranchingsTest, TreesOfASmallSetComeWithinOnePercentOfTheWorstPartThatASearchOfAllFinds) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const RandomSet set(rng, 2 + static_cast<int>(rng.Below(9)));
    const int root = std::countr_zero(set.members);
    const std::vector<Branching> trees = PackBranchings(set.links, set.members, root);
    ExpectTrees(trees, set.members, root);
    ExpectNoLinkOverloaded(trees, set.links);
    const std::uint64_t bound = LeastRateInto(set, root);
    EXPECT_LE(RateOf(trees), bound);
    EXPECT_GE(RateOf(trees), bound - bound / 100);
    if (HasFailure()) break;
  }
}

TEST(BranchingsTest, TreesOfAnyRootOfADamagedUltraServerFillItsWorstCut) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    DomainLinks links = UltraServer();
    links.Kill(ChipMask{1} << (1 + rng.Below(63)));
    for (int cables = 0; cables < 6; ++cables) {
      SlowCable(links, static_cast<int>(rng.Below(64)), torus::kAxes.at(rng.Below(3)),
                Direction::kPlus, static_cast<std::uint16_t>(rng.Below(1000)));
    }
    const ChipMask members = links.chips() & ~(seed % 2 == 0 ? ChipMask{1} << 63 : 0);
    const int root = static_cast<int>(rng.Below(63));
    const std::vector<Branching> trees = PackBranchings(links, members, root);
    const std::uint64_t bound = WorstBroadcastCut(links, members, members, root).rate;
    ExpectTrees(trees, members, root);
    ExpectNoLinkOverloaded(trees, links);
    EXPECT_GE(RateOf(trees), bound - bound / 100);
    EXPECT_EQ(trees.empty(), bound == 0);
    if (HasFailure()) break;
  }
}

// No tree can be lower than the farthest chip is away. A tree that leaves the root by one link may
// need one more to the chips on the root's other side.
TEST(BranchingsTest, TreesAreHardlyHigherThanTheFarthestChipIsAway) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    DomainLinks links = UltraServer();
    for (std::uint64_t cables = 0; cables < seed % 7; ++cables) {
      SlowCable(links, static_cast<int>(rng.Below(64)), torus::kAxes.at(rng.Below(3)),
                Direction::kPlus, 0);
    }
    const std::vector<Branching> trees = PackBranchings(links, links.chips(), 0);
    std::size_t farthest = 0;
    for (const auto& [chip, away] : DistancesFrom(0, links, links.chips())) {
      farthest = std::max(farthest, away);
    }
    EXPECT_GE(HeightOf(trees), farthest);
    EXPECT_LE(HeightOf(trees), farthest + 3);
  }
}

TEST(BranchingsTest, AHealthyUltraServerTakesTenTreesOfTheRateOfAZLink) {
  const std::vector<Branching> trees = PackBranchings(UltraServer(), ~ChipMask{0}, 0);
  ASSERT_EQ(trees.size(), 10U);
  for (const Branching& tree : trees) EXPECT_EQ(tree.rate, 64'000'000'000U);
}

TEST(BranchingsTest, ChipsThatAreCutOffHaveNoTrees) {
  DomainLinks links = Instance();
  links.Kill(ChipMask{1} << 5);
  EXPECT_TRUE(PackBranchings(links, links.chips(), 0).empty());
  EXPECT_TRUE(PackBranchings(links, 0b1, 0).empty());
}

}  // namespace
}  // namespace tahoma::collective

// Trees over few domains and the pairs of NICs that are their edges: that no NIC is in more pairs
// than it has a rate for, and that as many trees use them as the NICs allow.

#include "sim-node/emulator/collective/domains/nic_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "sim-node/emulator/collective/domains/domain_trees.h"

namespace tahoma::sim {
namespace {

using Nics = std::vector<std::vector<int>>;

// Some NICs down, and some slow if asked.
Nics RandomNics(Rng& rng, std::size_t groups, bool slow) {
  Nics nics(groups, std::vector<int>(16, 1000));
  for (std::vector<int>& of_group : nics) {
    const std::uint64_t down = rng.Below(12);
    for (std::size_t place = 0; place < 15; ++place) {
      if (rng.Below(15) < down) of_group[place] = slow ? static_cast<int>(rng.Below(1001)) : 0;
    }
  }
  return nics;
}

EdgeRates RatesOf(const std::vector<NicPair>& pairs, std::size_t groups) {
  EdgeRates rates(groups, std::vector<double>(groups));
  for (const NicPair& pair : pairs) {
    rates[pair.one.group][pair.other.group] += pair.permille;
    rates[pair.other.group][pair.one.group] += pair.permille;
  }
  return rates;
}

// No tree needs fewer than 2 (n - 1) NICs, of which each group has one at least: so many trees of
// rate 1 at most use NICs of these rates.
double MostTrees(const Nics& nics) {
  double all = 0;
  double least = 1e9;
  for (const std::vector<int>& of_group : nics) {
    const double rate = std::accumulate(of_group.begin(), of_group.end(), 0);
    all += rate;
    least = std::min(least, rate);
  }
  return std::min(least, all / (2 * static_cast<double>(nics.size() - 1)));
}

TEST(DomainTreesTest, AsManyTreesAsCayleySays) {
  EXPECT_EQ(DomainTreesOf(2).size(), 1U);
  EXPECT_EQ(DomainTreesOf(3).size(), 3U);
  EXPECT_EQ(DomainTreesOf(4).size(), 16U);
}

TEST(DomainTreesTest, EveryDomainIsBelowTheRootAndNoTreeIsHigherThanTwo) {
  std::set<std::set<std::pair<std::size_t, std::size_t>>> seen;
  for (const DomainTree& tree : DomainTreesOf(4)) {
    std::set<std::pair<std::size_t, std::size_t>> edges;
    std::size_t highest = 0;
    for (std::size_t domain = 0; domain < 4; ++domain) {
      std::size_t height = 0;
      for (std::size_t at = domain; tree.parent[at] != at && height < 4; at = tree.parent[at]) {
        ++height;
      }
      highest = std::max(highest, height);
      if (tree.parent[domain] != domain) edges.insert(std::minmax(domain, tree.parent[domain]));
    }
    EXPECT_EQ(highest, tree.height);
    EXPECT_LE(tree.height, 2U);
    EXPECT_EQ(edges.size(), 3U);
    EXPECT_TRUE(seen.insert(edges).second);
  }
}

// Any packing is a lower bound: trees that are taken as long as their edges have something left.
TEST(DomainTreesTest, NoPackingIsLargerThanTheRateAndSomeAreAsLarge) {
  Rng rng(1);
  for (int round = 0; round < 100; ++round) {
    EdgeRates rates(4, std::vector<double>(4));
    for (std::size_t one = 0; one < 4; ++one) {
      for (std::size_t other = 0; other < one; ++other) {
        rates[one][other] = rates[other][one] = static_cast<double>(rng.Below(4));
      }
    }
    const std::vector<DomainTree> trees = DomainTreesOf(4);
    double most = 0;
    for (int trial = 0; trial < 300; ++trial) {
      EdgeRates left = rates;
      double taken = 0;
      for (int tries = 0; tries < 60; ++tries) {
        const DomainTree& tree = trees[rng.Below(trees.size())];
        const auto for_each_edge = [&](const auto& visit) {
          for (std::size_t domain = 0; domain < 4; ++domain) {
            const auto [one, other] = std::minmax(domain, tree.parent[domain]);
            if (one != other) visit(left[one][other]);
          }
        };
        bool open = true;
        for_each_edge([&](double rate) { open = open && rate >= 0.5; });
        if (!open) continue;
        for_each_edge([](double& rate) { rate -= 0.5; });
        taken += 0.5;
      }
      most = std::max(most, taken);
    }
    EXPECT_LE(most, TreeRate(rates));
    EXPECT_GE(most, TreeRate(rates) - 0.5);
  }
}

TEST(NicPairsTest, NoNicIsInMorePairsThanItHasARateFor) {
  Rng rng(2);
  for (int round = 0; round < 300; ++round) {
    const Nics nics = RandomNics(rng, 2 + rng.Below(3), /*slow=*/round % 2 == 0);
    std::map<std::pair<std::size_t, std::size_t>, int> used;
    for (const NicPair& pair : PairNics(nics)) {
      EXPECT_LT(pair.one.group, pair.other.group);
      EXPECT_GT(pair.permille, 0);
      used[{pair.one.group, pair.one.place}] += pair.permille;
      used[{pair.other.group, pair.other.place}] += pair.permille;
    }
    for (const auto& [end, permille] : used) EXPECT_LE(permille, nics[end.first][end.second]);
  }
}

TEST(NicPairsTest, NearlyAsManyTreesUseThePairsAsTheNicsAllow) {
  Rng rng(3);
  for (int round = 0; round < 300; ++round) {
    const Nics nics = RandomNics(rng, 2 + rng.Below(3), /*slow=*/round % 2 == 0);
    const double most = MostTrees(nics);
    const double rate = TreeRate(RatesOf(PairNics(nics), nics.size()));
    EXPECT_LE(rate, most + 1e-6);
    EXPECT_GE(rate, 0.98 * most) << "round " << round;
  }
}

TEST(NicPairsTest, NicsThatWorkBelongToOnePairEach) {
  Nics nics(3, std::vector<int>(16, 1000));
  for (const std::size_t down : {0U, 1U, 4U, 5U}) nics[0][down] = 0;
  const std::vector<NicPair> pairs = PairNics(nics);
  EXPECT_EQ(pairs.size(), 22U);
  for (const NicPair& pair : pairs) EXPECT_EQ(pair.permille, 1000);
  EXPECT_EQ(TreeRate(RatesOf(pairs, 3)), 11'000);
}

}  // namespace
}  // namespace tahoma::sim

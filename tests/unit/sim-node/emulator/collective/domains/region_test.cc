// Tests regions against counting element by element, and moves between topology domains against the
// data of each.

#include "sim-node/emulator/collective/domains/region.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "sim-node/emulator/collective/domains/between_domains.h"
#include "sim-node/emulator/collective/domains/dealt_parts.h"

namespace tahoma::sim {
namespace {

TEST(RegionTest, RealOfFollowsThePiecesElementByElement) {
  Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Extent> pieces;
    std::vector<std::uint64_t> elements;
    std::uint64_t at = 0;
    for (int i = 0; i < 5; ++i) {
      at += rng.Below(4);
      const Extent piece{.begin = at, .end = at + rng.Below(5)};
      for (at = piece.begin; at < piece.end; ++at) elements.push_back(at);
      pieces.push_back(piece);
    }
    const Region region(pieces);
    ASSERT_EQ(region.size(), elements.size());
    for (std::uint64_t begin = 0; begin <= region.size(); ++begin) {
      for (std::uint64_t end = begin; end <= region.size(); ++end) {
        std::vector<std::uint64_t> found;
        for (const Extent& real : region.RealOf(begin, end)) {
          EXPECT_LT(real.begin, real.end);
          for (std::uint64_t e = real.begin; e < real.end; ++e) found.push_back(e);
        }
        const auto from = elements.begin();
        EXPECT_EQ(found, std::vector(from + static_cast<std::ptrdiff_t>(begin),
                                     from + static_cast<std::ptrdiff_t>(end)));
      }
    }
  }
}

TEST(RegionTest, NormalBeginsAtZeroAndKeepsGaps) {
  const Region normal = Region({{10, 12}, {20, 21}}).Normal();
  EXPECT_EQ(normal.pieces(), (std::vector<Extent>{{0, 2}, {10, 11}}));
}

TEST(RegionTest, CutByGivesPartsInProportionAndNothingToAZero) {
  EXPECT_EQ(CutBy({1, 1, 1}, 10), (std::vector<std::uint64_t>{0, 3, 6, 10}));
  EXPECT_EQ(CutBy({0, 2, 1}, 9), (std::vector<std::uint64_t>{0, 0, 6, 9}));
}

TEST(DealPartsTest, EveryElementIsAnsweredForOnceInProportionToTheNics) {
  Rng rng(4);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::uint64_t> bounds = {0};
    std::vector<int> rates;
    for (std::uint64_t i = 1 + rng.Below(8); i > 0; --i) {
      bounds.push_back(bounds.back() + rng.Below(20));
      rates.push_back(static_cast<int>(rng.Below(3) * 500));
    }
    rates.back() = 1000;
    const std::vector<DealtPart> parts = DealParts(bounds, rates, {});
    std::vector<std::uint64_t> answered(rates.size());
    std::uint64_t moved = 0;
    std::uint64_t at = 0;
    for (const DealtPart& part : parts) {
      ASSERT_EQ(part.elements.begin, at);
      ASSERT_LT(part.elements.begin, part.elements.end);
      at = part.elements.end;
      EXPECT_LE(bounds[part.owner], part.elements.begin);
      EXPECT_LE(part.elements.end, bounds[part.owner + 1]);
      answered[part.place] += part.elements.size();
      if (part.owner != part.place) moved += part.elements.size();
    }
    EXPECT_EQ(at, bounds.back());
    const bool equal = std::ranges::count(rates, rates[0]) == std::ssize(rates);
    const std::vector<std::uint64_t> fair = equal ? bounds : CutBy(rates, bounds.back());
    std::uint64_t needed = 0;  // what no dealing can leave where it is
    for (std::size_t place = 0; place < rates.size(); ++place) {
      EXPECT_EQ(answered[place], fair[place + 1] - fair[place]);
      const std::uint64_t own = bounds[place + 1] - bounds[place];
      needed += own - std::min(own, answered[place]);
    }
    EXPECT_EQ(moved, needed);
  }
}

TEST(DealPartsTest, WhatAChipCannotSendIsSpreadOverAllOthers) {
  std::set<std::size_t> helpers;
  for (const DealtPart& part : DealParts({0, 60, 120, 180, 240}, {0, 1000, 1000, 1000}, {})) {
    if (part.owner == 0) helpers.insert(part.place);
  }
  EXPECT_EQ(helpers, (std::set<std::size_t>{1, 2, 3}));
}

TEST(DealPartsTest, NearPlacesWithANicShareInProportionToTheLinks) {
  // Places 1 and 2 are near 0, and so is 3, whose NIC is down, too.
  const std::vector<NearPlaces> near = {
      {{.place = 1, .rate = 128}, {.place = 2, .rate = 64}, {.place = 3, .rate = 128}},
      {{.place = 0, .rate = 128}},
      {{.place = 0, .rate = 64}, {.place = 3, .rate = 64}},
      {{.place = 2, .rate = 64}, {.place = 0, .rate = 128}},
      {}};
  const std::vector<DealtPart> expected = {{.elements = {0, 40}, .owner = 0, .place = 1},
                                           {.elements = {40, 60}, .owner = 0, .place = 2},
                                           {.elements = {60, 120}, .owner = 1, .place = 1},
                                           {.elements = {120, 180}, .owner = 2, .place = 2},
                                           {.elements = {180, 240}, .owner = 3, .place = 2},
                                           {.elements = {240, 300}, .owner = 4, .place = 4}};
  EXPECT_EQ(DealParts({0, 60, 120, 180, 240, 300}, {0, 1000, 1000, 0, 1000}, near), expected);
}

TEST(DealPartsTest, WithoutANicNearItAChipsPartIsSpreadOverAll) {
  const std::vector<NearPlaces> near = {{{.place = 1, .rate = 1}}, {}, {}, {}};
  std::set<std::size_t> helpers;
  for (const DealtPart& part : DealParts({0, 60, 120, 180, 240}, {0, 0, 1000, 1000}, near)) {
    if (part.owner == 0) helpers.insert(part.place);
  }
  EXPECT_EQ(helpers, (std::set<std::size_t>{2, 3}));
}

// Against all shares in steps of a fiftieth.
TEST(HomeWeightsTest, NoOtherSharesLetTheSlowestDomainEndSooner) {
  Rng rng(9);
  for (int round = 0; round < 50; ++round) {
    const std::vector<std::uint64_t> rates = {1 + rng.Below(16), 1 + rng.Below(16),
                                              1 + rng.Below(16)};
    const auto longest = [&](double a, double b, double c) {
      const std::vector<double> shares = {a, b, c};
      double most = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        most = std::max(most, (1 + shares[i]) / static_cast<double>(rates[i]));
      }
      return most;
    };
    double best = 1e9;
    for (int a = 0; a <= 50; ++a) {
      for (int b = 0; a + b <= 50; ++b) {
        best = std::min(best, longest(a / 50.0, b / 50.0, (50 - a - b) / 50.0));
      }
    }
    const std::vector<int> weights = HomeWeights(rates);
    const double all = weights[0] + weights[1] + weights[2];
    EXPECT_LE(longest(weights[0] / all, weights[1] / all, weights[2] / all), best + 1e-4);
  }
  EXPECT_EQ(HomeWeights({5, 5, 5}), (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(HomeWeights({1, 16}), (std::vector<int>{1, 1})) << "two send all, whoever sums up";
}

TEST(RegionDeathTest, PiecesMustNotOverlap) {
  EXPECT_DEATH(Region({{0, 5}, {4, 6}}), "CHECK failed");
}

class BetweenDomains : public ::testing::TestWithParam<InterAlgorithm> {};

TEST_P(BetweenDomains, ReducingBringsEveryDomainsPartHomeOnce) {
  for (int domains = 1; domains <= 16; ++domains) {
    if (!Serves(GetParam(), domains)) continue;
    for (int home = 0; home < domains; ++home) {
      std::vector<std::multiset<int>> holds(static_cast<std::size_t>(domains));
      for (int domain = 0; domain < domains; ++domain)
        holds[static_cast<std::size_t>(domain)] = {domain};
      int step = 0;
      for (const DomainMove& move : ReduceTo(GetParam(), domains, home)) {
        EXPECT_GE(move.step, step);
        step = move.step;
        auto& from = holds[static_cast<std::size_t>(move.from)];
        holds[static_cast<std::size_t>(move.to)].insert(from.begin(), from.end());
        from.clear();
      }
      EXPECT_LT(step, std::max(1, StepsAmong(GetParam(), domains)));
      std::multiset<int> all;
      for (int domain = 0; domain < domains; ++domain) all.insert(domain);
      EXPECT_EQ(holds[static_cast<std::size_t>(home)], all) << domains << " home " << home;
    }
  }
}

TEST_P(BetweenDomains, SpreadingReachesEveryDomainOnceFromWhoHasIt) {
  for (int domains = 1; domains <= 16; ++domains) {
    if (!Serves(GetParam(), domains)) continue;
    for (int home = 0; home < domains; ++home) {
      std::vector<int> since(static_cast<std::size_t>(domains), -1);  // the step; -1 not yet
      since[static_cast<std::size_t>(home)] = 0;
      for (const DomainMove& move : SpreadFrom(GetParam(), domains, home)) {
        const int had = since[static_cast<std::size_t>(move.from)];
        EXPECT_TRUE(had >= 0 && had <= move.step);
        EXPECT_EQ(since[static_cast<std::size_t>(move.to)], -1);
        since[static_cast<std::size_t>(move.to)] = move.step + 1;
      }
      for (const int step : since) EXPECT_GE(step, 0);
    }
  }
}

TEST_P(BetweenDomains, WithAPartAtEveryHomeAllDomainsSendAsMuchInEveryStep) {
  for (int domains = 2; domains <= 16; ++domains) {
    if (!Serves(GetParam(), domains)) continue;
    std::map<std::pair<int, int>, int> sent;  // by step and domain
    for (int home = 0; home < domains; ++home) {
      for (const DomainMove& move : ReduceTo(GetParam(), domains, home)) {
        ++sent[{move.step, move.from}];
      }
    }
    int total = 0;
    for (int step = 0; step < StepsAmong(GetParam(), domains); ++step) {
      for (int domain = 0; domain < domains; ++domain)
        EXPECT_EQ((sent[{step, domain}]), (sent[{step, 0}]));
      total += sent[{step, 0}];
    }
    EXPECT_EQ(total, domains - 1);  // (N - 1)/N of the buffer: no algorithm sends less
  }
}

TEST_P(BetweenDomains, ABroadcastReachesEveryOtherDomainOnceFromWhoHasIt) {
  for (int domains = 2; domains <= 16; ++domains) {
    if (!Serves(GetParam(), domains)) continue;
    const std::vector<int> weights = BroadcastWeights(GetParam(), domains);
    for (int home = 0; home < domains; ++home) {
      if (weights[static_cast<std::size_t>(home)] == 0) continue;
      std::vector<int> since(static_cast<std::size_t>(domains), -1);  // the step; -1 not yet
      since[0] = 0;
      for (const DomainMove& move : BroadcastVia(GetParam(), domains, home)) {
        const int had = since[static_cast<std::size_t>(move.from)];
        EXPECT_TRUE(had >= 0 && had <= move.step);
        EXPECT_EQ(since[static_cast<std::size_t>(move.to)], -1) << domains << " home " << home;
        since[static_cast<std::size_t>(move.to)] = move.step + 1;
      }
      for (const int step : since) EXPECT_GE(step, 0);
    }
  }
}

TEST(BroadcastTest, MeshesAndRingsSendAndReceiveTheBufferAtMostOnceInEveryDomain) {
  for (const InterAlgorithm algorithm : {InterAlgorithm::kMesh, InterAlgorithm::kRing}) {
    for (int domains = 2; domains <= 16; ++domains) {
      const std::vector<int> weights = BroadcastWeights(algorithm, domains);
      std::map<int, int> sent, received;  // by domain, in parts of which there are domains - 1
      for (int home = 0; home < domains; ++home) {
        if (weights[static_cast<std::size_t>(home)] == 0) continue;
        for (const DomainMove& move : BroadcastVia(algorithm, domains, home)) {
          ++sent[move.from];
          ++received[move.to];
        }
      }
      EXPECT_EQ(sent[0], domains - 1);
      for (int domain = 1; domain < domains; ++domain) {
        EXPECT_EQ(sent[domain], domains - 2);
        EXPECT_EQ(received[domain], domains - 1);
      }
    }
  }
}

// Below nodes of random sizes, on two levels: moves as in other algorithms, and each part crosses a
// node's uplink once in each direction at most.
TEST(LevelsTest, APartLeavesANodeOnceAndReachesItOnce) {
  Rng rng(5);
  for (int i = 0; i < 200; ++i) {
    const int domains = 1 + static_cast<int>(rng.Below(20));
    NetworkLevels levels(2);
    std::vector<int> parent;  // of the nodes of the first level
    for (int node = 0; node < 6; ++node) parent.push_back(static_cast<int>(rng.Below(3)));
    for (int domain = 0; domain < domains; ++domain) {
      levels[0].push_back(static_cast<int>(rng.Below(6)));
      levels[1].push_back(parent[static_cast<std::size_t>(levels[0].back())]);
    }
    const int home = static_cast<int>(rng.Below(static_cast<std::uint64_t>(domains)));
    std::vector<std::set<int>> holds(static_cast<std::size_t>(domains));
    for (int domain = 0; domain < domains; ++domain) {
      holds[static_cast<std::size_t>(domain)] = {domain};
    }
    std::map<std::pair<std::size_t, int>, int> left;  // by level and node
    int step = 0;
    for (const DomainMove& move : ReduceTo(InterAlgorithm::kLevels, domains, home, levels)) {
      EXPECT_GE(move.step, step);
      EXPECT_LT(move.step, StepsAmong(InterAlgorithm::kLevels, domains, levels));
      step = move.step;
      auto& from = holds[static_cast<std::size_t>(move.from)];
      EXPECT_FALSE(from.empty());
      holds[static_cast<std::size_t>(move.to)].merge(from);
      EXPECT_TRUE(from.empty()) << "something was summed up twice";
      for (std::size_t level = 0; level < levels.size(); ++level) {
        const int node = levels[level][static_cast<std::size_t>(move.from)];
        if (node != levels[level][static_cast<std::size_t>(move.to)]) ++left[{level, node}];
      }
    }
    EXPECT_EQ(holds[static_cast<std::size_t>(home)].size(), static_cast<std::size_t>(domains));
    for (const auto& [node, times] : left) EXPECT_EQ(times, 1);
  }
}

TEST(LevelsTest, ADomainThatStandsAtOnePlaceOfItsNodeStandsForTheSamePlacesOfOthers) {
  // Two nodes of three domains: the home's place among its own decides.
  const NetworkLevels levels = {{0, 1, 0, 1, 0, 1}};
  const std::vector<DomainMove> moves = ReduceTo(InterAlgorithm::kLevels, 6, 2, levels);
  const std::vector<DomainMove> expected = {{.step = 0, .from = 0, .to = 2},
                                            {.step = 0, .from = 4, .to = 2},
                                            {.step = 0, .from = 1, .to = 3},
                                            {.step = 0, .from = 5, .to = 3},
                                            {.step = 1, .from = 3, .to = 2}};
  EXPECT_EQ(moves, expected);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, BetweenDomains,
                         ::testing::Values(InterAlgorithm::kRing, InterAlgorithm::kMesh,
                                           InterAlgorithm::kRdh, InterAlgorithm::kLevels,
                                           InterAlgorithm::kSingleStep),
                         [](const auto& algorithm) {
                           std::string name(Name(algorithm.param));
                           std::erase(name, '-');
                           return name;
                         });

TEST(InterAlgorithmTest, StepsGrowAsAwsSays) {
  EXPECT_EQ(StepsAmong(InterAlgorithm::kRing, 32), 31);
  EXPECT_EQ(StepsAmong(InterAlgorithm::kMesh, 32), 1);
  EXPECT_EQ(StepsAmong(InterAlgorithm::kRdh, 32), 5);
  EXPECT_FALSE(Serves(InterAlgorithm::kRdh, 12));
  for (const InterAlgorithm algorithm :
       {InterAlgorithm::kRing, InterAlgorithm::kMesh, InterAlgorithm::kRdh}) {
    EXPECT_EQ(StepsAmong(algorithm, 1), 0);
  }
}

}  // namespace
}  // namespace tahoma::sim

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

INSTANTIATE_TEST_SUITE_P(Algorithms, BetweenDomains, ::testing::ValuesIn(kInterAlgorithms),
                         [](const auto& algorithm) { return std::string(Name(algorithm.param)); });

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

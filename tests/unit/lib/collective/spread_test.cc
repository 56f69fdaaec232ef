// Spread against the rules of the game, and against how many steps there must be at least.

#include "lib/collective/spread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lib/base/rng.h"

namespace tahoma::collective {
namespace {

// Both directions of every cable of a torus of 4 x 4, but for `broken` cables.
std::vector<Edge> Plane(const std::set<std::pair<std::size_t, std::size_t>>& broken = {}) {
  std::vector<Edge> edges;
  for (std::size_t chip = 0; chip < 16; ++chip) {
    const std::size_t right = chip / 4 * 4 + (chip + 1) % 4;
    const std::size_t below = (chip + 4) % 16;
    for (const std::size_t next : {right, below}) {
      if (broken.contains({chip, next})) continue;
      edges.push_back({.from = chip, .to = next});
      edges.push_back({.from = next, .to = chip});
    }
  }
  return edges;
}

std::vector<std::size_t> OwnersOf(std::size_t chips, std::size_t parts) {
  std::vector<std::size_t> owners;
  for (std::size_t piece = 0; piece < chips * parts; ++piece) owners.push_back(piece / parts);
  return owners;
}

// Follows the sends step by step. Returns the steps they take; 0 and a failure where a chip
// sends what it has not, gets what it has, or an edge carries two pieces at once.
std::size_t StepsPlayed(const std::vector<std::size_t>& owners, const std::vector<Edge>& edges,
                        std::size_t chips, const std::vector<PieceSend>& sends) {
  std::vector<std::set<std::size_t>> has(chips);
  for (std::size_t piece = 0; piece < owners.size(); ++piece) has[owners[piece]].insert(piece);
  std::vector<std::size_t> free_at(edges.size());
  std::size_t end = 0;
  for (const PieceSend& one : sends) {
    end = std::max(end, one.begin + edges[one.edge].steps);
  }
  for (std::size_t step = 0; step < end; ++step) {
    for (const PieceSend& one : sends) {
      const Edge& edge = edges[one.edge];
      if (one.begin + edge.steps != step) continue;
      EXPECT_TRUE(has[edge.to].insert(one.piece).second) << "got twice";
    }
    for (const PieceSend& one : sends) {
      if (one.begin != step) continue;
      EXPECT_TRUE(has[edges[one.edge].from].contains(one.piece)) << "not there yet";
      EXPECT_LE(free_at[one.edge], step) << "two at once";
      free_at[one.edge] = step + edges[one.edge].steps;
    }
  }
  for (const PieceSend& one : sends) {
    if (one.begin + edges[one.edge].steps == end) {
      EXPECT_TRUE(has[edges[one.edge].to].insert(one.piece).second);
    }
  }
  for (const auto& pieces : has) EXPECT_EQ(pieces.size(), owners.size());
  return end;
}

std::size_t StepsOf(const std::vector<std::size_t>& owners, const std::vector<Edge>& edges,
                    std::size_t chips) {
  const auto sends = Spread(owners, edges, chips);
  EXPECT_TRUE(sends.has_value());
  return StepsPlayed(owners, edges, chips, *sends);
}

TEST(SpreadTest, APlaneNeedsNoMoreStepsThanItsLinksAllow) {
  for (const std::size_t parts : {1U, 2U, 4U, 8U}) {
    // Each chip lacks 15 x parts pieces and gets four a step.
    EXPECT_EQ(StepsOf(OwnersOf(16, parts), Plane(), 16), (15 * parts + 3) / 4) << parts;
  }
}

TEST(SpreadTest, ABrokenCableCostsWhatTheChipsBesideItMustPay) {
  for (const std::size_t parts : {1U, 2U, 4U, 8U}) {
    EXPECT_EQ(StepsOf(OwnersOf(16, parts), Plane({{5, 6}}), 16), 5 * parts) << parts;
  }
}

TEST(SpreadTest, OnePieceNeedsAsManyStepsAsItsFarthestChipIsAway) {
  EXPECT_EQ(StepsOf({0}, Plane(), 16), 4U);
}

TEST(SpreadTest, ManyPiecesOfOneChipLeaveItOnAllItsLinks) {
  const std::size_t steps = StepsOf(std::vector<std::size_t>(64, 3), Plane(), 16);
  EXPECT_GE(steps, 16U);
  EXPECT_LE(steps, 20U);
}

TEST(SpreadTest, RandomNetworksOfRandomSpeedsObeyTheRules) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const std::size_t chips = 2 + rng.Below(10);
    std::vector<Edge> edges;
    for (std::size_t chip = 0; chip < chips; ++chip) {  // a ring, so that it hangs together
      edges.push_back({chip, (chip + 1) % chips, 1 + rng.Below(4)});
    }
    for (std::uint64_t more = rng.Below(12); more > 0; --more) {
      const Edge edge{rng.Below(chips), rng.Below(chips), 1 + rng.Below(4)};
      if (edge.from != edge.to) edges.push_back(edge);
    }
    std::vector<std::size_t> owners;
    for (std::uint64_t piece = 1 + rng.Below(100); piece > 0; --piece) {
      owners.push_back(rng.Below(chips));
    }
    StepsOf(owners, edges, chips);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(SpreadTest, WhereNoPathLeadsThereIsNoAnswer) {
  const std::vector<Edge> directed = {{0, 1, 1}, {1, 2, 1}};
  EXPECT_TRUE(Spread({0}, directed, 3).has_value());
  EXPECT_FALSE(Spread({1}, directed, 3).has_value());
  EXPECT_FALSE(Spread({0, 1, 2}, directed, 3).has_value());
  EXPECT_TRUE(Spread({0, 0}, {}, 1)->empty());
  EXPECT_TRUE(Spread({}, directed, 3)->empty());
}

TEST(SpreadTest, TheSameQuestionHasTheSameAnswer) {
  const auto first = Spread(OwnersOf(16, 4), Plane({{0, 1}}), 16);
  const auto second = Spread(OwnersOf(16, 4), Plane({{0, 1}}), 16);
  ASSERT_EQ(first->size(), second->size());
  for (std::size_t i = 0; i < first->size(); ++i) {
    EXPECT_EQ((*first)[i].piece, (*second)[i].piece);
    EXPECT_EQ((*first)[i].edge, (*second)[i].edge);
  }
}

}  // namespace
}  // namespace tahoma::collective

// Which gangs end for another, against all choices that there are.

#include "controller/plan/victims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/plan/planner.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A gang of slices of that shape, one pod for each node's part of a slice.
GangSpec SlicesOf(const std::string& name, const std::string& shape, int slices) {
  const int chips = torus::Shape::Parse(shape)->chip_count();
  const int pods = std::max(1, chips / 16);
  GangSpec gang = GangOf(name, pods * slices,
                         [&](const std::string& pod) { return ChipClaim(pod, chips / pods); });
  gang.shape_text = shape;
  gang.slices = slices;
  return gang;
}

GangSpec PodsOf(const std::string& name, int pods, int chips) {
  return GangOf(name, pods, [&](const std::string& pod) { return ChipClaim(pod, chips); });
}

class CountingPlanner {
 public:
  std::optional<Placement> Find(const ClusterState& fleet, const GangSpec& gang) {
    ++calls_;
    const auto shared = std::make_shared<const GangSpec>(gang);
    return planner_.Plan(fleet, {shared}, WallTime(), Explaining::kNone)[0].placement;
  }
  int calls() const { return calls_; }

 private:
  Planner planner_;
  int calls_ = 0;
};

// A fleet in which gangs run.
struct VictimCase {
  ClusterState fleet;
  std::vector<RunningGang> running;
  CountingPlanner place = {};

  // Returns whether the gang has a place, which it then takes.
  bool Run(const GangSpec& gang, std::int64_t work, bool may_end = true) {
    const auto placement = place.Find(fleet, gang);
    if (!placement) return false;
    RunningGang run = {.claims = {}, .pods = {}, .work = work};
    for (const auto& holding : placement->Holdings(gang, WallTime())) {
      run.claims.push_back(holding->claim_uid);
      fleet.Hold(holding);
    }
    if (may_end) running.push_back(std::move(run));
    return true;
  }
  std::optional<Victims> Choose(const GangSpec& gang) {
    return ChooseVictims(fleet, gang, running, WallTime(),
                         [&](const ClusterState& without) { return place.Find(without, gang); });
  }
  bool Suffices(const GangSpec& gang, const Ended& ended) {
    return place.Find(Without(fleet, running, ended), gang).has_value();
  }
  std::int64_t Work(const Ended& ended) const {
    std::int64_t work = 0;
    for (const std::size_t i : ended) work += running[i].work;
    return work;
  }
  // The number and the work of the best of all choices.
  std::optional<std::pair<std::size_t, std::int64_t>> Best(const GangSpec& gang) {
    std::optional<std::pair<std::size_t, std::int64_t>> best;
    for (unsigned mask = 0; mask < 1U << running.size(); ++mask) {
      Ended ended;
      for (std::size_t i = 0; i < running.size(); ++i) {
        if ((mask >> i & 1U) != 0) ended.push_back(i);
      }
      const std::pair cost(ended.size(), Work(ended));
      if ((!best || cost < *best) && Suffices(gang, ended)) best = cost;
    }
    return best;
  }
};

VictimCase VictimFleet(int count) {
  VictimCase one;
  for (int i = 0; i < count; ++i) AddUltraServer(one.fleet, "us-" + std::to_string(i), false);
  return one;
}

TEST(VictimsTest, NobodyEndsWhereThereIsRoomOrNoneToBeMade) {
  VictimCase one = VictimFleet(1);
  ASSERT_TRUE(one.Run(SlicesOf("a", "4x4x2", 1), 10));
  const auto free = one.Choose(SlicesOf("b", "4x4x2", 1));
  ASSERT_TRUE(free.has_value());
  EXPECT_THAT(free->gangs, IsEmpty());
  EXPECT_FALSE(one.Choose(SlicesOf("b", "4x4x4", 2)).has_value());
  ASSERT_TRUE(one.Run(SlicesOf("c", "2x2", 1), 10, false));
  EXPECT_FALSE(one.Choose(SlicesOf("b", "4x4x4", 1)).has_value()) << "c may not be ended";
}

TEST(VictimsTest, OneLargeGangEndsBeforeTwoSmallOnesWithLessWork) {
  VictimCase one = VictimFleet(2);
  ASSERT_TRUE(one.Run(SlicesOf("small", "4x4x2", 1), 1));
  ASSERT_TRUE(one.Run(SlicesOf("other", "4x4x2", 1), 1));
  ASSERT_TRUE(one.Run(SlicesOf("large", "4x4x4", 1), 1000));
  const auto victims = one.Choose(SlicesOf("b", "4x4x4", 1));
  ASSERT_TRUE(victims.has_value());
  EXPECT_THAT(victims->gangs, ElementsAre(2));
  EXPECT_TRUE(victims->fewest);
}

TEST(VictimsTest, AmongEquallyManyThoseThatLoseLeastEnd) {
  VictimCase one = VictimFleet(3);
  for (const std::int64_t work : {9, 3, 5}) {
    ASSERT_TRUE(one.Run(SlicesOf("g" + std::to_string(work), "4x4x4", 1), work));
  }
  const auto victims = one.Choose(PodsOf("b", 1, 16));
  ASSERT_TRUE(victims.has_value());
  EXPECT_THAT(victims->gangs, ElementsAre(1));
}

TEST(VictimsTest, OfEqualWorkTheLowestPriorityAndThenTheLastBegunEnds) {
  VictimCase one = VictimFleet(3);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(one.Run(SlicesOf("g" + std::to_string(i), "4x4x4", 1), 1));
  one.running[0].priority = 2;
  one.running[1].priority = one.running[2].priority = 1;
  one.running[2].begun += std::chrono::seconds(5);
  EXPECT_THAT(one.Choose(SlicesOf("b", "4x4", 1))->gangs, ElementsAre(2));
}

// The defect of others: two that each free half are ended where one of two would do.
TEST(VictimsTest, AGangOfTwoDomainsEndsTheOneGangThatHasBoth) {
  VictimCase one = VictimFleet(4);
  ASSERT_TRUE(one.Run(SlicesOf("a", "4x4x4", 1), 1));
  ASSERT_TRUE(one.Run(SlicesOf("both", "4x4x4", 2), 1000));
  ASSERT_TRUE(one.Run(SlicesOf("c", "4x4x4", 1), 1));
  const auto victims = one.Choose(SlicesOf("b", "4x4x4", 2));
  ASSERT_TRUE(victims.has_value());
  EXPECT_THAT(victims->gangs, ElementsAre(1));
  EXPECT_TRUE(victims->fewest);
}

// Fills a small fleet with up to `most` gangs that may end, and a few that may not.
VictimCase RandomCase(Rng& rng, std::size_t most) {
  VictimCase one = VictimFleet(static_cast<int>(rng.Below(3)) + 1);
  for (std::uint64_t i = rng.Below(3); i > 0; --i) {
    one.fleet.PutNode(NodeFactsOf({.name = "lone-" + std::to_string(i), .cores = false}));
  }
  const std::vector<std::string> shapes = {"4x4x4", "4x4x2", "4x4", "2x4", "2x2", "1x2"};
  for (int i = 0; i < 60 && one.running.size() < most; ++i) {
    const std::string name = "g" + std::to_string(i);
    const auto slices = static_cast<int>(rng.Below(2)) + 1;
    const GangSpec gang = rng.Chance(1, 3)
                              ? PodsOf(name, slices, static_cast<int>(rng.Below(16)) + 1)
                              : SlicesOf(name, shapes[rng.Below(shapes.size())], slices);
    one.Run(gang, static_cast<std::int64_t>(rng.Below(6)), !rng.Chance(1, 8));
  }
  return one;
}

TEST(VictimsTest, AGangOfOnePartEndsTheBestOfAllChoices) {
  Rng rng(47);
  int chosen = 0;
  for (int round = 0; round < 30; ++round) {
    VictimCase one = RandomCase(rng, 7);
    const std::vector<std::string> shapes = {"4x4x4", "4x4x2", "4x4", "2x4"};
    const GangSpec gang = rng.Chance(1, 2) ? PodsOf("b", 1, static_cast<int>(rng.Below(9)) + 8)
                                           : SlicesOf("b", shapes[rng.Below(shapes.size())], 1);
    const auto victims = one.Choose(gang);
    const auto best = one.Best(gang);
    ASSERT_EQ(victims.has_value(), best.has_value()) << round;
    if (!victims) continue;
    EXPECT_TRUE(one.Suffices(gang, victims->gangs)) << round;
    EXPECT_EQ(std::pair(victims->gangs.size(), one.Work(victims->gangs)), *best) << round;
    EXPECT_TRUE(victims->fewest) << round;
    chosen += victims->gangs.empty() ? 0 : 1;
  }
  EXPECT_GT(chosen, 10);
}

TEST(VictimsTest, AGangOfSeveralPartsEndsAtMostOneMoreThanNecessary) {
  Rng rng(48);
  int chosen = 0;
  for (int round = 0; round < 30; ++round) {
    VictimCase one = RandomCase(rng, 7);
    const std::vector<std::string> shapes = {"4x4x4", "4x4x2", "4x4", "2x4"};
    const auto parts = static_cast<int>(rng.Below(3)) + 2;
    const GangSpec gang = rng.Chance(1, 2) ? PodsOf("b", parts, static_cast<int>(rng.Below(9)) + 8)
                                           : SlicesOf("b", shapes[rng.Below(shapes.size())], parts);
    const auto victims = one.Choose(gang);
    const auto best = one.Best(gang);
    ASSERT_EQ(victims.has_value(), best.has_value()) << round;
    if (!victims) continue;
    EXPECT_TRUE(one.Suffices(gang, victims->gangs)) << round;
    EXPECT_LE(victims->gangs.size(), best->first + 1) << round;
    if (victims->fewest) {
      EXPECT_EQ(std::pair(victims->gangs.size(), one.Work(victims->gangs)), *best) << round;
    }
    for (const std::size_t spared : victims->gangs) {
      Ended rest = victims->gangs;
      std::erase(rest, spared);
      EXPECT_FALSE(one.Suffices(gang, rest)) << round << ": " << spared << " could stay";
    }
    chosen += victims->gangs.empty() ? 0 : 1;
  }
  EXPECT_GT(chosen, 10);
}

TEST(VictimsTest, TheLargestChoiceTakesABoundedNumberOfPlans) {
  VictimCase one = VictimFleet(96);
  for (int i = 0; i < 4 * 96; ++i) {
    ASSERT_TRUE(one.Run(PodsOf("g" + std::to_string(i), 1, 16), i * 37 % 64));
  }
  const int before = one.place.calls();
  const auto victims = one.Choose(SlicesOf("b", "4x4x4", 8));
  ASSERT_TRUE(victims.has_value());
  EXPECT_EQ(victims->gangs.size(), 32U);
  EXPECT_LE(one.place.calls() - before, static_cast<int>(kPlacesMost + kSparedMost));
}

}  // namespace
}  // namespace tahoma::controller

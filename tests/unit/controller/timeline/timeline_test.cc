// The earliest start of a gang on fleets whose future is known.

#include "controller/timeline/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "controller/plan/planner.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using std::chrono::seconds;

constexpr WallTime kNow{seconds(1'700'000'000)};

class TimelineTest : public ::testing::Test {
 protected:
  TimelineTest() {
    for (const std::string id : {"us-0", "us-1"}) AddUltraServer(fleet_, id);
  }
  static std::shared_ptr<GangSpec> Gang(const std::string& name, int members, int chips,
                                        int runtime = 0) {
    auto gang = std::make_shared<GangSpec>(
        GangOf(name, members, [&](const std::string& pod) { return ChipClaim(pod, chips); }));
    for (MemberSpec& member : gang->members) {
      member.claims.front().requests.front().alternatives.front().class_selectors = {
          kNeuronClassSelector};
    }
    if (runtime > 0) gang->max_runtime = seconds(runtime);
    return gang;
  }
  std::vector<Decision> Plan(const ClusterState& fleet, const Queue& queue, WallTime when,
                             Explaining explaining) {
    ++looks_;
    return planner_.Plan(fleet, queue, when, explaining);
  }
  PlanFunction Planning() {
    return [this](const ClusterState& fleet, const Queue& queue, WallTime when,
                  Explaining explaining) { return Plan(fleet, queue, when, explaining); };
  }
  Placement PlaceOn(const ClusterState& fleet, const std::shared_ptr<GangSpec>& gang) {
    auto decisions = planner_.Plan(fleet, {gang}, kNow);
    return decisions.front().placement.value_or(Placement());
  }
  // Lets the gang run until then; 0: for ever.
  void Run(const std::string& name, int members, int chips, int end) {
    const auto gang = Gang(name, members, chips, end);
    std::vector<std::string> claims;
    for (const auto& holding : PlaceOn(fleet_, gang).Holdings(*gang, kNow)) {
      fleet_.Hold(holding);
      claims.push_back(holding->claim_uid);
    }
    ASSERT_FALSE(claims.empty());
    ends_.push_back({end > 0 ? kNow + seconds(end) : End::kUnknown, held_.size()});
    held_.push_back(claims);
  }
  Timeline Make(std::vector<std::shared_ptr<const Promise>> promises = {}) {
    std::ranges::sort(ends_);
    return Timeline({.fleet = fleet_,
                     .now = kNow,
                     .ends = ends_,
                     .release =
                         [this](std::uint64_t what, ClusterState& fleet) {
                           for (const std::string& claim : held_[what]) fleet.Release(claim);
                         },
                     .promises = std::move(promises)});
  }

  ClusterState fleet_;
  Planner planner_;
  std::vector<End> ends_;
  std::vector<std::vector<std::string>> held_;
  int looks_ = 0;
};

TEST_F(TimelineTest, AGangStartsWhenEnoughHasEnded) {
  Run("a", 4, 16, 100);
  Run("b", 2, 16, 50);
  Run("c", 2, 16, 300);
  const auto start = Make().FindEarliest(Gang("g", 4, 16), Planning());
  ASSERT_TRUE(start.has_value());
  EXPECT_EQ(start->when, kNow + seconds(100));
  EXPECT_TRUE(start->exact);
  EXPECT_EQ(start->placement.members.size(), 4U);
}

TEST_F(TimelineTest, WithoutAnEndThereIsNoStartButBeyondAllKnownTimes) {
  Run("a", 4, 16, 0);
  Run("b", 4, 16, 0);
  const auto gang = Gang("g", 4, 16);
  EXPECT_FALSE(Make().FindEarliest(gang, Planning()).has_value());
  const auto start = Make().FindEarliest(gang, Planning(), Timeline::Beyond::kUnknown);
  ASSERT_TRUE(start.has_value());
  EXPECT_EQ(start->when, End::kUnknown);
  EXPECT_EQ(start->placement.members.front().node.substr(0, 4),
            "us-" + std::string(1, fleet_.FindHolding(held_[0].front())->devices.front().node[3]))
      << "the oldest is taken to end first";
}

TEST_F(TimelineTest, PromisedHardwareIsTheHoldersFromItsTimeOnAndUntilItsEnd) {
  Run("a", 4, 16, 100);
  Run("b", 4, 16, 0);
  const auto holder = Gang("holder", 4, 16, 1000);
  auto promise = std::make_shared<Promise>();
  promise->from = kNow + seconds(100);
  promise->until = kNow + seconds(1100);
  ClusterState then = fleet_;
  for (const std::string& claim : held_[0]) then.Release(claim);
  for (const auto& holding : PlaceOn(then, holder).Holdings(*holder, kNow)) {
    promise->holdings.push_back(holding);
  }
  const auto start = Make({promise}).FindEarliest(Gang("g", 4, 16, 500), Planning());
  ASSERT_TRUE(start.has_value());
  EXPECT_EQ(start->when, kNow + seconds(1100));
  EXPECT_FALSE(Meets(*promise, kNow, seconds(100)));
  EXPECT_TRUE(Meets(*promise, kNow, seconds(200)));
  EXPECT_TRUE(Meets(*promise, kNow, std::nullopt));
  EXPECT_FALSE(Meets(*promise, promise->until, std::nullopt));
}

TEST_F(TimelineTest, AThousandEndsAreNotLookedAtOneByOne) {
  Run("long", 4, 16, 5000);
  for (int i = 0; i < 64; ++i) Run("s" + std::to_string(i), 1, 1, 100 + i);
  const auto start = Make().FindEarliest(Gang("g", 4, 16), Planning());
  ASSERT_TRUE(start.has_value());
  EXPECT_EQ(start->when, kNow + seconds(163));
  EXPECT_LE(looks_, Timeline::kLooksMost);
  const auto before = Make().FindBefore(start->when, Gang("g", 4, 16), Planning());
  EXPECT_FALSE(before.has_value());
}

}  // namespace
}  // namespace tahoma::controller

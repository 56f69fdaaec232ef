// Gangs whose pods compete for places: one place after the other does not find theirs.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/plan/planner.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;

void TieTo(MemberSpec& member, std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  member.node.any_term = {
      {{.key = "kubernetes.io/hostname", .op = NodeOperator::kIn, .values = std::move(names)}}};
}

GangSpec Pods(const std::string& name, const std::vector<std::int64_t>& chips) {
  std::size_t next = 0;
  GangSpec gang = GangOf(name, static_cast<int>(chips.size()),
                         [&](const std::string& pod) { return ChipClaim(pod, chips[next++]); });
  gang.single_pod = false;
  return gang;
}

class PlannerExactTest : public ::testing::Test {
 protected:
  Decision PlanOne(const GangSpec& gang) {
    return planner_.Plan(state_, {std::make_shared<const GangSpec>(gang)}, WallTime{})[0];
  }
  std::string Why(const GangSpec& gang) {
    const Decision decision = PlanOne(gang);
    if (!decision.blocked) return "placed on " + decision.placement->ToString();
    return fmt::format("{}: {}", ToString(decision.blocked->reason), decision.blocked->message);
  }
  void Occupy(const std::string& node, int chips) {
    Holding holding;
    holding.claim_uid = "held-" + node;
    holding.holder = "gang default/other";
    for (int chip = 0; chip < chips; ++chip) {
      holding.devices.push_back({.node = node, .device = fmt::format("neuron-device-{}", chip)});
    }
    state_.Hold(std::make_shared<const Holding>(std::move(holding)));
  }

  ClusterState state_;
  Planner planner_;
};

TEST_F(PlannerExactTest, AFirstPodLeavesTheOnlyNodeOfASecond) {
  state_.PutNode(NodeFactsOf({.name = "trn2-0"}));
  state_.PutNode(NodeFactsOf({.name = "trn2-1"}));
  GangSpec gang = Pods("het", {16, 16});
  TieTo(gang.members[0], {"trn2-0", "trn2-1"});
  TieTo(gang.members[1], {"trn2-0"});
  const Decision decision = PlanOne(gang);
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  EXPECT_EQ(decision.placement->members[0].node, "trn2-1");
  EXPECT_EQ(decision.placement->members[1].node, "trn2-0");
}

TEST_F(PlannerExactTest, PodsWithTooFewNodesAmongThemAreNamed) {
  for (const char* name : {"a", "b", "c"}) state_.PutNode(NodeFactsOf({.name = name}));
  GangSpec gang = Pods("g", {16, 16, 16});
  TieTo(gang.members[0], {"a", "b"});
  TieTo(gang.members[1], {"a"});
  TieTo(gang.members[2], {"b"});
  EXPECT_EQ(Why(gang),
            "NeverFits: the 3 pods need nodes at once; the 3 pods of ranks 0, 1 and 2 can be on a, "
            "b only, which can take 2 of them, even with nothing running");
}

TEST_F(PlannerExactTest, ATieThatOnlyBusyNodesMeetWaitsForCapacity) {
  for (const char* name : {"a", "b", "c"}) state_.PutNode(NodeFactsOf({.name = name}));
  Occupy("b", 16);
  GangSpec gang = Pods("g", {16, 16});
  TieTo(gang.members[0], {"a", "b"});
  TieTo(gang.members[1], {"a"});
  EXPECT_EQ(Why(gang),
            "WaitsForCapacity: the 2 pods need nodes at once; now the 2 pods of ranks 0 and 1 can "
            "be on a only, which can take 1 of them; with nothing running, b, a would do; in the "
            "way: gang default/other (16 chips)");
}

TEST_F(PlannerExactTest, ASecondSliceIsTiedAndTheFirstIsNot) {
  AddUltraServer(state_, "us-0", false);
  AddUltraServer(state_, "us-1", false);
  GangSpec gang = Pods("s", std::vector<std::int64_t>(8, 16));
  gang.shape_text = "4x4x4";
  gang.slices = 2;
  for (std::size_t i = 4; i < 8; ++i) {
    TieTo(gang.members[i], {"us-0-n0", "us-0-n1", "us-0-n2", "us-0-n3"});
  }
  const Decision decision = PlanOne(gang);
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  EXPECT_EQ(decision.placement->ToString(), "us-1 4x4x4+0,0,0; us-0 4x4x4+0,0,0");
}

TEST_F(PlannerExactTest, ABoxAroundTheRingBeginsWhereItsFirstRankMayBe) {
  AddUltraServer(state_, "us-0", false);
  GangSpec gang = Pods("r", {16, 16, 16, 16});
  gang.shape_text = "4x4x4";
  TieTo(gang.members[0], {"us-0-n2"});
  const Decision decision = PlanOne(gang);
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  EXPECT_EQ(decision.placement->ToString(), "us-0 4x4x4+0,0,2");
  EXPECT_EQ(decision.placement->members[1].node, "us-0-n3");
  EXPECT_EQ(decision.placement->members[3].node, "us-0-n1");
}

TEST_F(PlannerExactTest, RanksThatAreTiedAgainstTheOrderOfTheRingNeverFit) {
  AddUltraServer(state_, "us-0", false);
  GangSpec gang = Pods("r", {16, 16, 16, 16});
  gang.shape_text = "4x4x4";
  TieTo(gang.members[0], {"us-0-n2"});
  TieTo(gang.members[1], {"us-0-n0"});
  EXPECT_EQ(Why(gang),
            "NeverFits: needs 4x4x4 = 64 chips of one topology domain; the box of ranks 0, 1, 2 "
            "and 3 finds no room where its pods may be, in their order, even with nothing running");
}

TEST_F(PlannerExactTest, AnAlternativeThatLeavesRoomForTheOthersIsTaken) {
  state_.PutNode(NodeFactsOf({.name = "a"}));
  GangSpec gang = Pods("g", {16, 8});
  auto& alternatives = gang.members[0].claims[0].requests[0].alternatives;
  alternatives.push_back(alternatives[0]);
  alternatives[0].name = "all";
  alternatives[1].name = "half";
  alternatives[1].count = 8;
  const Decision decision = PlanOne(gang);
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  EXPECT_EQ(decision.placement->members[0].claims[0].allocation.results.size(), 8U);
}

TEST_F(PlannerExactTest, PodsThatPackInOneWayAlonePack) {
  state_.PutNode(NodeFactsOf({.name = "a"}));
  state_.PutNode(NodeFactsOf({.name = "b"}));
  // Largest first fills a with 8 and 5; only 8 + 8 and 6 + 5 + 5 fill both.
  EXPECT_THAT(Why(Pods("g", {8, 6, 5, 8, 5})), HasSubstr("placed on"));
}

TEST_F(PlannerExactTest, PodsWithMoreChipsThanTheirNodesHaveNeverFit) {
  for (const char* name : {"a", "b"}) state_.PutNode(NodeFactsOf({.name = name}));
  EXPECT_EQ(Why(Pods("g", {7, 6, 4, 7, 6, 4})),
            "NeverFits: the 6 pods need nodes at once; the 6 pods of ranks 0, 1, 2, 3, 4 and 1 "
            "more take at least 34 chips, and the nodes that they can be on have 32, even with "
            "nothing running");
}

// A node takes one pod of 9 chips and one of 4. One of 21 is left over, whichever it is.
TEST_F(PlannerExactTest, WhatIsNotFoundWithinTheBoundSaysSo) {
  for (int i = 0; i < 20; ++i) state_.PutNode(NodeFactsOf({.name = fmt::format("n{}", i)}));
  std::vector<std::int64_t> chips(20, 9);
  chips.insert(chips.end(), 21, 4);
  EXPECT_EQ(Why(Pods("g", chips)),
            "NotFoundWithinBound: the 41 pods need nodes at once; not found within the bound of "
            "20000 steps, even with nothing running");
}

TEST_F(PlannerExactTest, APreferenceIsMetWhereItCanBe) {
  for (const char* name : {"a", "b"}) state_.PutNode(NodeFactsOf({.name = name}));
  GangSpec gang = Pods("g", {4});
  GangSpec better = gang;
  TieTo(better.members[0], {"b"});
  GangSpec impossible = gang;
  TieTo(impossible.members[0], {"c"});
  gang.preferred = {std::make_shared<const GangSpec>(impossible),
                    std::make_shared<const GangSpec>(better)};
  EXPECT_EQ(Why(gang), "placed on b");
  gang.preferred.pop_back();
  EXPECT_EQ(Why(gang), "placed on a");
}

PlaceRule Rule(PlaceRule::Kind kind, std::vector<std::size_t> askers,
               std::vector<std::size_t> selected) {
  PlaceRule rule{.kind = kind, .key = "kubernetes.io/hostname"};
  rule.askers = std::move(askers);
  rule.selected = std::move(selected);
  return rule;
}

TEST_F(PlannerExactTest, PodsThatMustBeApartGetNodesOfTheirOwn) {
  for (const char* name : {"a", "b", "c"}) state_.PutNode(NodeFactsOf({.name = name}));
  GangSpec gang = Pods("g", {1, 1, 1});
  gang.rules = {Rule(PlaceRule::Kind::kApart, {0, 1, 2}, {0, 1, 2})};
  EXPECT_EQ(Why(gang), "placed on a, b, c");
  gang = Pods("h", {1, 1, 1, 1});
  gang.rules = {Rule(PlaceRule::Kind::kApart, {0, 1, 2, 3}, {0, 1, 2, 3})};
  EXPECT_EQ(Why(gang),
            "NeverFits: the 4 pods need nodes at once; no division of its 4 pods among the 3 nodes "
            "with room for some leaves room for all and keeps podAntiAffinity on "
            "kubernetes.io/hostname, even with nothing running");
}

TEST_F(PlannerExactTest, PodsThatLookForTheirLikeGoToOnePlaceWithRoomForAll) {
  for (const char* name : {"a", "b"}) state_.PutNode(NodeFactsOf({.name = name}));
  Occupy("a", 12);
  GangSpec gang = Pods("g", {4, 4});
  gang.rules = {Rule(PlaceRule::Kind::kBeside, {0, 1}, {})};
  gang.rules[0].one_place = true;
  EXPECT_EQ(Why(gang), "placed on b") << "a has room for one of the two";
}

TEST_F(PlannerExactTest, AGangIsSpreadWithThePodsThatAreThereAlready) {
  for (const char* name : {"a", "b"}) state_.PutNode(NodeFactsOf({.name = name}));
  GangSpec gang = Pods("g", {1, 1, 1});
  gang.rules = {Rule(PlaceRule::Kind::kSpread, {0, 1, 2}, {0, 1, 2})};
  gang.rules[0].place_count = 2;
  gang.rules[0].counts = {{"a", 2}};
  const Decision decision = PlanOne(gang);
  ASSERT_TRUE(decision.placement);
  EXPECT_EQ(std::ranges::count(decision.placement->members, "a", &MemberPlacement::node), 1)
      << "3 on a and 2 on b";
}

TEST_F(PlannerExactTest, AShapeThatPutsPodsTogetherThatMustBeApartIsSaid) {
  state_.PutNode(NodeFactsOf({.name = "a"}));
  GangSpec gang = Pods("g", {8, 8});
  gang.shape_text = "4x4";
  gang.rules = {Rule(PlaceRule::Kind::kApart, {0, 1}, {0, 1})};
  EXPECT_EQ(
      Why(gang),
      "NotFoundWithinBound: needs 4x4x1 = 16 chips of one topology domain; no place was found "
      "that has the shape and keeps podAntiAffinity on kubernetes.io/hostname");
}

// Each place is as good as any other: without that, the search would try every order of nodes.
TEST_F(PlannerExactTest, ThatTooFewOfManyEqualNodesAreThereIsProven) {
  for (int i = 0; i < 40; ++i) state_.PutNode(NodeFactsOf({.name = fmt::format("n{}", i)}));
  GangSpec gang = Pods("g", std::vector<std::int64_t>(41, 1));
  std::vector<std::size_t> all(41);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  gang.rules = {Rule(PlaceRule::Kind::kApart, all, all)};
  EXPECT_THAT(Why(gang), HasSubstr("NeverFits"));
}

}  // namespace
}  // namespace tahoma::controller

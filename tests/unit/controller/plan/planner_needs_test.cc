// The needs of pods beside devices: cpu, memory, numbers of pods, ports.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "controller/plan/planner.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::shared_ptr<const kube::PodNeeds> Needs(std::int64_t cores, std::int64_t bytes = 0,
                                            std::int32_t port = 0) {
  kube::PodNeeds needs{.amounts = {{"cpu", cores * 1000}, {"memory", bytes}, {"pods", 1}},
                       .ports = {}};
  std::erase_if(needs.amounts, [](const auto& amount) { return amount.second == 0; });
  if (port != 0) needs.ports.push_back({.ip = "", .protocol = "TCP", .port = port});
  return std::make_shared<const kube::PodNeeds>(std::move(needs));
}

class PlannerNeedsTest : public ::testing::Test {
 protected:
  void AddNode(const std::string& name, std::int64_t cores, std::int64_t pods = 110) {
    NodeFacts facts = NodeFactsOf({.name = name});
    facts.allocatable = {{"cpu", cores * 1000}, {"memory", 1024}, {"pods", pods}};
    state_.PutNode(std::move(facts));
  }
  void AddUltraServerWith(const std::string& id, std::int64_t cores) {
    for (int z = 0; z < 4; ++z) {
      NodeFacts facts = NodeFactsOf({.name = id + "-n" + std::to_string(z),
                                     .type = "trn2u.48xlarge",
                                     .ultra_server = id,
                                     .z = z});
      facts.allocatable = {{"cpu", cores * 1000}, {"memory", 1024}, {"pods", 110}};
      state_.PutNode(std::move(facts));
    }
  }
  Decision Plan(GangSpec gang) {
    Queue queue{std::make_shared<const GangSpec>(std::move(gang))};
    return planner_.Plan(state_, queue, WallTime(std::chrono::hours(24)))[0];
  }
  std::string NodesOf(const Decision& decision) {
    if (!decision.placement) return "";
    std::string nodes;
    for (const MemberPlacement& member : decision.placement->members) nodes += member.node + " ";
    return nodes;
  }
  std::string Why(GangSpec gang) {
    const Decision decision = Plan(std::move(gang));
    if (!decision.blocked) return "placed on " + NodesOf(decision);
    return std::string(ToString(decision.blocked->reason)) + ": " + decision.blocked->message;
  }

  ClusterState state_;
  Planner planner_;
};

GangSpec PodsNeeding(const std::string& name, int count, std::int64_t chips,
                     std::shared_ptr<const kube::PodNeeds> needs) {
  GangSpec gang =
      GangOf(name, count, [&](const std::string& pod) { return ChipClaim(pod, chips); });
  for (MemberSpec& member : gang.members) member.needs = needs;
  return gang;
}

GangSpec WithoutClaims(const std::string& name, std::shared_ptr<const kube::PodNeeds> needs) {
  GangSpec gang = PodsNeeding(name, 1, 1, std::move(needs));
  gang.members[0].claims.clear();
  return gang;
}

TEST_F(PlannerNeedsTest, APodThatNoNodeIsLargeEnoughForNeverFits) {
  AddNode("a", 192);
  AddNode("b", 192);
  EXPECT_THAT(Why(PodsNeeding("big", 1, 1, Needs(9000))),
              AllOf(HasSubstr("NeverFits"), HasSubstr("2 Insufficient cpu")));
  EXPECT_THAT(Why(PodsNeeding("fat", 1, 1, Needs(1, 4096))), HasSubstr("2 Insufficient memory"));
}

TEST_F(PlannerNeedsTest, APodGoesWhereEnoughIsLeft) {
  AddNode("a", 8);
  AddNode("b", 16);
  EXPECT_EQ(NodesOf(Plan(PodsNeeding("p", 1, 1, Needs(12)))), "b ");
}

TEST_F(PlannerNeedsTest, PodsOfOthersCount) {
  AddNode("a", 16);
  state_.AddUse("a", *Needs(10));
  const GangSpec gang = PodsNeeding("p", 1, 1, Needs(8));
  EXPECT_THAT(Why(gang), AllOf(HasSubstr("WaitsForCapacity"), HasSubstr("1 Insufficient cpu"),
                               Not(HasSubstr("selectors"))));
  EXPECT_TRUE(Plan(gang).blocked->lacks_room);
  state_.SubtractUse("a", *Needs(10));
  EXPECT_EQ(NodesOf(Plan(gang)), "a ");
}

TEST_F(PlannerNeedsTest, PodsOfOneGangCountBesideEachOther) {
  AddNode("a", 16);
  AddNode("b", 16);
  EXPECT_EQ(NodesOf(Plan(PodsNeeding("p", 2, 1, Needs(10)))), "a b ");
  EXPECT_FALSE(Plan(PodsNeeding("q", 3, 1, Needs(10))).placement);
}

TEST_F(PlannerNeedsTest, ANodeTakesNoMorePodsThanItMay) {
  AddNode("a", 16, /*pods=*/2);
  EXPECT_TRUE(Plan(PodsNeeding("two", 2, 1, Needs(1))).placement);
  EXPECT_FALSE(Plan(PodsNeeding("three", 3, 1, Needs(1))).placement);
  state_.AddUse("a", *Needs(0));
  state_.AddUse("a", *Needs(0));
  EXPECT_THAT(Why(PodsNeeding("one", 1, 1, Needs(1))), HasSubstr("1 Too many pods"));
}

TEST_F(PlannerNeedsTest, APortOfTheNodeIsTakenOnce) {
  AddNode("a", 16);
  AddNode("b", 16);
  EXPECT_EQ(NodesOf(Plan(PodsNeeding("two", 2, 1, Needs(1, 0, 18080)))), "a b ");
  state_.PutPod({"default", "x"}, "a", Needs(1, 0, 18080));
  state_.PutPod({"default", "y"}, "b", Needs(1, 0, 18080));
  EXPECT_THAT(Why(PodsNeeding("p", 1, 1, Needs(1, 0, 18080))),
              HasSubstr("2 no free host port 18080"));
}

TEST_F(PlannerNeedsTest, ABoxIsWhereItsNodesHaveEnough) {
  AddUltraServerWith("us-0", 8);
  AddUltraServerWith("us-1", 64);
  GangSpec gang = PodsNeeding("box", 4, 16, Needs(32));
  gang.shape_text = "4x4x4";
  EXPECT_EQ(NodesOf(Plan(gang)), "us-1-n0 us-1-n1 us-1-n2 us-1-n3 ");
  state_.AddUse("us-1-n2", *Needs(40));
  EXPECT_THAT(Why(gang), AllOf(HasSubstr("WaitsForCapacity"), HasSubstr("Insufficient cpu")));
  EXPECT_TRUE(Plan(gang).blocked->lacks_room);
}

// The defect: each box was held against the whole node, and both were placed there.
TEST_F(PlannerNeedsTest, BoxesOfAGangOnOneNodeCountBesideEachOther) {
  AddNode("a", 192);
  state_.AddUse("a", *Needs(100));
  GangSpec gang = PodsNeeding("g", 2, 4, Needs(70));
  gang.members[1].needs = Needs(30);
  gang.shape_text = "2x2";
  gang.slices = 2;
  EXPECT_THAT(Why(gang), HasSubstr("WaitsForCapacity"));
  AddNode("b", 40);
  EXPECT_EQ(NodesOf(Plan(gang)), "a b ");
  state_.SubtractUse("a", *Needs(100));
  state_.RemoveNode("b");
  EXPECT_EQ(NodesOf(Plan(gang)), "a a ");
}

TEST_F(PlannerNeedsTest, ABoxThatNoNodeIsLargeEnoughForNeverFits) {
  AddUltraServerWith("us-0", 8);
  GangSpec gang = PodsNeeding("box", 4, 16, Needs(32));
  gang.shape_text = "4x4x4";
  EXPECT_THAT(Why(gang), AllOf(HasSubstr("NeverFits"), HasSubstr("4 Insufficient cpu")));
}

TEST_F(PlannerNeedsTest, APodWithoutDevicesNeedsRoomToo) {
  AddNode("a", 16);
  state_.AddUse("a", *Needs(10));
  EXPECT_EQ(Why(WithoutClaims("p", Needs(6))), "placed on a ");
  EXPECT_EQ(Why(WithoutClaims("p", Needs(7))),
            "WaitsForCapacity: the pod finds no node; 0/1 nodes: 1 Insufficient cpu");
  EXPECT_EQ(Why(WithoutClaims("p", Needs(17))),
            "NeverFits: the pod finds no node; 0/1 nodes: 1 Insufficient cpu");
}

// Else the end of a pod would not wake a gang without an explanation.
TEST_F(PlannerNeedsTest, AGangThatIsNotExplainedStillSaysThatItLacksRoom) {
  AddNode("a", 16);
  state_.AddUse("a", *Needs(10));
  const auto lacks = [&](GangSpec gang) {
    Queue queue{std::make_shared<const GangSpec>(std::move(gang))};
    const auto decisions =
        planner_.Plan(state_, queue, WallTime(std::chrono::hours(24)), Explaining::kNone);
    EXPECT_FALSE(decisions[0].blocked->explained);
    return decisions[0].blocked->lacks_room;
  };
  EXPECT_TRUE(lacks(PodsNeeding("p", 1, 1, Needs(8))));
  EXPECT_FALSE(lacks(PodsNeeding("chips", 2, 16, Needs(1))));
  GangSpec box = PodsNeeding("box", 1, 16, Needs(8));
  box.shape_text = "4x4";
  EXPECT_TRUE(lacks(box));
}

TEST_F(PlannerNeedsTest, APodWithoutDevicesMayBeHelpedByAnyNodeThatChanges) {
  NodeFacts cordoned = NodeFactsOf({.name = "a"});
  cordoned.schedulable = false;
  state_.PutNode(std::move(cordoned));
  EXPECT_TRUE(Plan(WithoutClaims("p", Needs(1))).blocked->lacks_room);
}

TEST_F(PlannerNeedsTest, GangsThatDifferInNeedsAloneGetTheirOwnAnswer) {
  AddNode("a", 16);
  Queue queue{std::make_shared<const GangSpec>(PodsNeeding("big", 1, 1, Needs(17))),
              std::make_shared<const GangSpec>(PodsNeeding("small", 1, 1, Needs(1)))};
  const auto decisions = planner_.Plan(state_, queue, WallTime(std::chrono::hours(24)));
  EXPECT_FALSE(decisions[0].placement);
  EXPECT_TRUE(decisions[1].placement);
}

// Whatever comes in whatever order, no node holds more than it has, and a pod that fits some node
// is placed.
TEST_F(PlannerNeedsTest, RandomPodsNeverOverfillANode) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    state_ = ClusterState();
    std::map<std::string, std::int64_t> left;
    for (const std::string name : {"a", "b", "c"}) {
      const auto cores = static_cast<std::int64_t>(random() % 16 + 1);
      AddNode(name, cores);
      left[name] = cores;
    }
    for (int pod = 0; pod < 12; ++pod) {
      const auto cores = static_cast<std::int64_t>(random() % 8 + 1);
      const GangSpec gang = WithoutClaims("p" + std::to_string(pod), Needs(cores));
      const Decision decision = Plan(gang);
      const bool fits = std::any_of(left.begin(), left.end(),
                                    [&](const auto& node) { return node.second >= cores; });
      ASSERT_EQ(decision.placement.has_value(), fits);
      if (!fits) continue;
      const std::string& node = decision.placement->members[0].node;
      ASSERT_GE(left[node] -= cores, 0);
      state_.PutPod(gang.members[0].pod, node, gang.members[0].needs);
    }
  }
}

// Gangs of boxes of a pod each on two nodes, which have chips for four boxes each: a gang is placed
// exactly when some division of its pods among the nodes leaves enough cpu.
TEST_F(PlannerNeedsTest, RandomBoxesArePlacedExactlyWhenTheNodesHaveEnough) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    state_ = ClusterState();
    std::map<std::string, std::int64_t> cores;
    for (const std::string name : {"a", "b"}) {
      AddNode(name, cores[name] = static_cast<std::int64_t>(random() % 24 + 1));
    }
    const int pods = static_cast<int>(random() % 4 + 1);
    GangSpec gang = PodsNeeding("g", pods, 4, nullptr);
    gang.shape_text = "2x2";
    gang.slices = pods;
    std::vector<std::int64_t> wants;
    for (MemberSpec& member : gang.members) {
      member.needs = Needs(wants.emplace_back(static_cast<std::int64_t>(random() % 12 + 1)));
    }
    bool fits = false;
    for (unsigned on_a = 0; on_a < 1U << pods; ++on_a) {
      std::int64_t a = cores["a"];
      std::int64_t b = cores["b"];
      for (std::size_t i = 0; i < wants.size(); ++i) ((on_a >> i & 1U) != 0 ? a : b) -= wants[i];
      fits = fits || (a >= 0 && b >= 0);
    }
    const Decision decision = Plan(gang);
    ASSERT_EQ(decision.placement.has_value(), fits) << round << ": " << Why(gang);
    if (!fits) continue;
    for (std::size_t i = 0; i < wants.size(); ++i) {
      ASSERT_GE(cores[decision.placement->members[i].node] -= wants[i], 0) << round;
    }
  }
}

}  // namespace
}  // namespace tahoma::controller

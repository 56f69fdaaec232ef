#include "controller/plan/planner.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

std::shared_ptr<const GangSpec> Share(GangSpec gang) {
  return std::make_shared<const GangSpec>(std::move(gang));
}

class PlannerTest : public ::testing::Test {
 protected:
  Decision PlanOne(GangSpec gang) {
    std::vector<Decision> decisions = planner_.Plan(state_, {Share(std::move(gang))}, now_);
    EXPECT_EQ(decisions.size(), 1U);
    EXPECT_NE(decisions[0].placement.has_value(), decisions[0].blocked.has_value());
    return decisions[0];
  }
  // Plans and, when placed, lets the state hold it.
  Decision Run(GangSpec gang) {
    Decision decision = PlanOne(std::move(gang));
    if (decision.placement) {
      for (auto& h : decision.placement->Holdings(*decision.gang, now_)) state_.Hold(h);
    }
    return decision;
  }
  static std::vector<std::string> Devices(const MemberPlacement& member) {
    std::vector<std::string> devices;
    for (const ClaimPlacement& claim : member.claims) {
      for (const DeviceResult& result : claim.allocation.results) devices.push_back(result.device);
    }
    return devices;
  }
  std::string Where(GangSpec gang) {
    const Decision decision = Run(std::move(gang));
    return decision.placement ? decision.placement->ToString() : decision.blocked->message;
  }

  ClusterState state_;
  Planner planner_;
  WallTime now_ = WallTime(std::chrono::hours(24));
};

GangSpec OfShape(const std::string& name, int members, const std::string& shape,
                 std::int64_t chips_each) {
  GangSpec gang =
      GangOf(name, members, [&](const std::string& pod) { return ChipClaim(pod, chips_each); });
  gang.shape_text = shape;
  return gang;
}

TEST_F(PlannerTest, AGangOfFourPodsGetsTheWholeUltraServerInTorusOrder) {
  AddUltraServer(state_, "us-0");
  const Decision decision = Run(OfShape("train", 4, "4x4x4", 16));
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  EXPECT_EQ(decision.placement->ToString(), "us-0 4x4x4+0,0,0");
  for (std::size_t i = 0; i < 4; ++i) {
    const MemberPlacement& member = decision.placement->members[i];
    EXPECT_EQ(member.rank, static_cast<int>(i));
    EXPECT_EQ(member.node, "us-0-n" + std::to_string(i));
    EXPECT_EQ(Devices(member).size(), 16U);
    EXPECT_EQ(member.claims[0].allocation.node, member.node);
    EXPECT_EQ(member.claims[0].allocation.results[0].tolerations.back(), ManagedToleration());
  }
  EXPECT_EQ(state_.domain(DomainId(0)).free, 0U);
}

TEST_F(PlannerTest, TwoHalvesAreDisjointAndAThirdWaitsForThem) {
  AddUltraServer(state_, "us-0");
  EXPECT_EQ(Where(OfShape("a", 2, "4x4x2", 16)), "us-0 4x4x2+0,0,0");
  EXPECT_EQ(Where(OfShape("b", 2, "4x4x2", 16)), "us-0 4x4x2+0,0,2");
  const Decision third = Run(OfShape("c", 2, "4x4x2", 16));
  ASSERT_TRUE(third.blocked);
  EXPECT_EQ(third.blocked->reason, BlockedReason::kWaitsForCapacity);
  EXPECT_EQ(third.blocked->message,
            "needs 4x4x2 = 32 chips of one topology domain; 1 domain could hold it; no chip of "
            "them is free; in "
            "the way: gang default/a (32 chips)");
}

TEST_F(PlannerTest, SaysTheNearestMiss) {
  AddUltraServer(state_, "us-0");
  Run(OfShape("a", 2, "4x4x2", 16));
  const Decision whole = Run(OfShape("b", 4, "4x4x4", 16));
  ASSERT_TRUE(whole.blocked);
  EXPECT_EQ(whole.blocked->message,
            "needs 4x4x4 = 64 chips of one topology domain; 1 domain could hold it; the largest "
            "free box is "
            "4x4x2 on us-0; in the way: gang default/a (32 chips)");
  EXPECT_EQ(whole.blocked->largest_free->ToString(), "4x4x2");
}

TEST_F(PlannerTest, WholeDomainsAreNotBrokenWhileABrokenOneFits) {
  AddUltraServer(state_, "us-0");
  AddUltraServer(state_, "us-1");
  state_.PutNode(NodeFactsOf({.name = "lone"}));
  EXPECT_EQ(Where(OfShape("a", 1, "2x2", 4)), "lone 2x2x1+0,0,0");
  EXPECT_EQ(Where(OfShape("b", 1, "4x4", 16)), "us-0 4x4x1+0,0,0");
  EXPECT_EQ(Where(OfShape("c", 1, "2x4", 8)), "lone 2x4x1+2,0,0");
  EXPECT_EQ(Where(OfShape("d", 1, "4x4", 16)), "us-0 4x4x1+0,0,1");
  EXPECT_EQ(Where(OfShape("e", 4, "4x4x4", 16)), "us-1 4x4x4+0,0,0");
}

TEST_F(PlannerTest, BrokenChipsAndLinksAreAvoided) {
  state_.PutNode(NodeFactsOf({.name = "n0", .broken = 0x0001}));
  const Decision whole = Run(OfShape("a", 1, "4x4", 16));
  ASSERT_TRUE(whole.blocked);
  EXPECT_EQ(whole.blocked->reason, BlockedReason::kWaitsForRepair);
  const Decision row = Run(OfShape("b", 1, "4x1", 4));
  ASSERT_TRUE(row.placement);
  EXPECT_EQ(row.placement->slices[0].box.mask & 1U, 0U);

  state_.PutNode(NodeFactsOf({.name = "n1", .links_down = {"", "", "", "", "", "x+"}}));
  state_.RemoveNode("n0");
  for (int i = 0; i < 4; ++i) {
    const Decision pair = Run(OfShape("p" + std::to_string(i), 1, "1x2", 2));
    ASSERT_TRUE(pair.placement);
    EXPECT_NE(pair.placement->slices[0].box.mask, 0x60U);
  }
}

TEST_F(PlannerTest, SlicesAreBoxesOnAsManyDomainsAsItTakes) {
  for (const char* id : {"us-0", "us-1"}) AddUltraServer(state_, id);
  GangSpec gang = OfShape("train", 8, "4x4x4", 16);
  gang.slices = 2;
  const Decision decision = Run(std::move(gang));
  ASSERT_TRUE(decision.placement);
  EXPECT_EQ(decision.placement->ToString(), "us-0 4x4x4+0,0,0; us-1 4x4x4+0,0,0");
  EXPECT_EQ(decision.placement->members[3].slice, 0);
  EXPECT_EQ(decision.placement->members[4].slice, 1);
}

TEST_F(PlannerTest, NothingIsHeldWhenASliceFindsNoPlace) {
  AddUltraServer(state_, "us-0");
  GangSpec gang = OfShape("train", 8, "4x4x4", 16);
  gang.slices = 2;
  gang.priority = 1;
  const std::vector<Decision> decisions =
      planner_.Plan(state_, {Share(gang), Share(OfShape("next", 4, "4x4x4", 16))}, now_);
  ASSERT_TRUE(decisions[0].blocked);
  EXPECT_NE(decisions[0].blocked->message.find("found 1 of 2"), std::string::npos);
  EXPECT_TRUE(decisions[1].placement);
}

TEST_F(PlannerTest, MembersShareALayerOfTheirBox) {
  AddUltraServer(state_, "us-0");
  const Decision decision = Run(OfShape("train", 8, "4x4x2", 4));
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  std::map<std::string, std::set<std::string>> by_node;
  for (const MemberPlacement& member : decision.placement->members) {
    for (const std::string& device : Devices(member)) {
      EXPECT_TRUE(by_node[member.node].insert(device).second);
    }
  }
  EXPECT_EQ(by_node.size(), 2U);
}

TEST_F(PlannerTest, GangsAreServedInTheOrderOfTheQueueAndABlockedGangLetsOthersPass) {
  AddUltraServer(state_, "us-0");
  const auto whole = Share(OfShape("whole", 4, "4x4x4", 16));
  const auto half = Share(OfShape("half", 2, "4x4x2", 16));
  const auto small = Share(OfShape("small", 1, "4x4", 16));
  const auto served = [&](const Queue& queue) {
    std::vector<std::string> order;
    for (const Decision& d : planner_.Plan(state_, queue, now_)) {
      order.push_back(d.gang->key.name + (d.placement ? "+" : "-"));
    }
    return order;
  };
  EXPECT_EQ(served({half, whole, small}), (std::vector<std::string>{"half+", "whole-", "small+"}));
  EXPECT_EQ(served({whole, small, half}), (std::vector<std::string>{"whole+", "small-", "half-"}));
}

TEST_F(PlannerTest, RefusesWhatContradictsItself) {
  AddUltraServer(state_, "us-0");
  const auto message = [&](GangSpec gang) {
    const Decision decision = Run(std::move(gang));
    EXPECT_TRUE(decision.blocked);
    if (!decision.blocked) return std::string();
    return std::string(ToString(decision.blocked->reason)) + ": " + decision.blocked->message;
  };
  EXPECT_EQ(message(OfShape("a", 4, "3x5x2", 16)),
            "Invalid: shape 3x5x2: each side must be 1, 2 or 4; 3 and 5 are not");
  EXPECT_EQ(message(OfShape("b", 4, "4x4x4", 8)),
            "Invalid: the claims of the pods of one box ask for 32 chips, but 4x4x4 has 64");
  EXPECT_EQ(message(OfShape("c", 3, "4x4x4", 16)),
            "Invalid: the claims of the pods of one box ask for 48 chips, but 4x4x4 has 64");
  EXPECT_EQ(message(OfShape("d", 1, "2x2x2", 8)),
            "Invalid: no rotation of 2x2x2 leaves each of 1 pod within one node");
  GangSpec twelve = OfShape("e", 1, "", 12);
  twelve.chips = 12;
  EXPECT_EQ(message(twelve),
            "Invalid: chips 12: must be 1, 2, 4, 8, 16, 32 or 64, or a multiple of 64 up to 65536");
  GangSpec uneven = OfShape("f", 3, "4x4", 16);
  uneven.slices = 2;
  EXPECT_EQ(message(uneven),
            "Invalid: slices 2: must divide spec.members (3): every slice has the same number of "
            "pods");
  EXPECT_EQ(message(OfShape("g", 1, "", 17)),
            "NeverFits: the pod asks for 17 devices of class neuron.aws.com; none of 4 nodes has "
            "that many that match");
  GangSpec typo = OfShape("h", 1, "", 1);
  typo.members[0].claims[0].requests[0].alternatives[0].selectors = {"devise.driver == ''"};
  EXPECT_EQ(
      message(typo),
      "Invalid: claim default/h-0-claim, request \"neurons\": the CEL selector \"devise.driver "
      "== ''\": 1:1: undeclared reference to 'devise'");
  GangSpec no_class = OfShape("i", 1, "", 1);
  no_class.members[0].claims[0].requests[0].alternatives[0].class_found = false;
  EXPECT_EQ(message(no_class),
            "Invalid: claim default/i-0-claim, request \"neurons\": DeviceClass \"neuron.aws.com\" "
            "does not exist");
  GangSpec config = OfShape("j", 1, "", 1);
  config.members[0].claims[0].configs = {
      {.source = ConfigSource::kClaim,
       .requests = {},
       .driver = "neuron.aws.com",
       .parameters = R"({"apiVersion":"neuron.aws.com/v1","kind":"NeuronConfig","lnc":1})"}};
  EXPECT_EQ(message(config),
            "Invalid: claim default/j-0-claim, request \"neurons\": its configuration: unknown "
            "field \"lnc\" in NeuronConfig; its only field is \"logicalNeuronCore\"");
  GangSpec error = OfShape("k", 1, "", 1);
  error.members[0].claims[0].requests[0].alternatives[0].selectors = {
      "device.attributes['neuron.aws.com'].color == 'red'"};
  EXPECT_NE(message(error).find("no such key: color"), std::string::npos);
}

// The defect: once the fleet was busy, the sentence was that no node had that many chips.
TEST_F(PlannerTest, ClaimsThatDoNotAddUpToTheShapeAreAlwaysToldTheSame) {
  AddUltraServer(state_, "us-0");
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  GangSpec second = OfShape("second", 4, "4x4", 8);
  second.slices = 2;
  second.members[3].claims[0].requests[0].alternatives[0].count = 4;
  const std::string too_few =
      "the claims of the pods of one box ask for 32 chips, but 4x4x4 has 64";
  const std::string too_few_second =
      "the claims of the pods of one box ask for 12 chips, but 4x4x1 has 16";
  const auto both = [&] {
    EXPECT_EQ(Where(OfShape("few", 2, "4x4x4", 16)), too_few);
    EXPECT_EQ(Where(second), too_few_second);
  };
  both();
  EXPECT_EQ(Where(OfShape("a", 4, "4x4x4", 16)), "us-0 4x4x4+0,0,0");
  both();
  EXPECT_EQ(Where(OfShape("b", 1, "4x4", 16)), "n0 4x4x1+0,0,0");
  both();
}

TEST_F(PlannerTest, CoresShareStartedChipsAndNeverMixTheirSize) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  const auto cores = [&](const std::string& name, int lnc, std::int64_t count) {
    const Decision decision =
        Run(GangOf(name, 1, [&](const std::string& pod) { return CoreClaim(pod, lnc, count); }));
    EXPECT_TRUE(decision.placement) << decision.blocked->message;
    return decision.placement ? Devices(decision.placement->members[0])
                              : std::vector<std::string>();
  };
  EXPECT_EQ(cores("a", 2, 1), (std::vector<std::string>{"neuron-core-0-lnc2-0"}));
  EXPECT_EQ(cores("b", 2, 2),
            (std::vector<std::string>{"neuron-core-0-lnc2-1", "neuron-core-0-lnc2-2"}));
  EXPECT_EQ(cores("c", 1, 1), (std::vector<std::string>{"neuron-core-1-lnc1-0"}));
  EXPECT_EQ(cores("d", 2, 1), (std::vector<std::string>{"neuron-core-0-lnc2-3"}));
  EXPECT_EQ(cores("e", 1, 7).size(), 7U);
  EXPECT_EQ(cores("f", 2, 1), (std::vector<std::string>{"neuron-core-2-lnc2-0"}));
  const Decision whole = Run(OfShape("g", 1, "4x4", 16));
  ASSERT_TRUE(whole.blocked);
  EXPECT_EQ(whole.blocked->reason, BlockedReason::kWaitsForCapacity);
}

TEST_F(PlannerTest, APodOnOneNodeGetsConnectedChips) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  const Decision four = Run(GangOf("p", 1, [](const auto& pod) { return ChipClaim(pod, 4); }));
  ASSERT_TRUE(four.placement);
  EXPECT_EQ(Devices(four.placement->members[0]),
            (std::vector<std::string>{"neuron-device-0", "neuron-device-1", "neuron-device-4",
                                      "neuron-device-5"}));
  EXPECT_TRUE(Run(GangOf("q", 1, [](const auto& pod) { return ChipClaim(pod, 3); })).placement);
  const Decision nine = Run(GangOf("r", 1, [](const auto& pod) { return ChipClaim(pod, 10); }));
  ASSERT_TRUE(nine.blocked);
  EXPECT_EQ(nine.blocked->message,
            "the pod needs 10 chips of one node; 1 node could give them, the most free chips are 9 "
            "on n0; in the way: pod default/p (4 chips), pod default/q (3 chips)");
}

TEST_F(PlannerTest, TheSamePodTwiceAndTheSameClaimInTwoPodsAreHeldOnce) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  state_.PutNode(NodeFactsOf({.name = "n1"}));
  GangSpec a = GangOf("a", 1, [](const auto&) { return ChipClaim("shared", 4); });
  GangSpec b = GangOf("b", 1, [](const auto&) { return ChipClaim("shared", 4); });
  const auto decisions = planner_.Plan(state_, {Share(a), Share(b)}, now_);
  ASSERT_TRUE(decisions[0].placement && decisions[1].placement);
  EXPECT_EQ(decisions[0].placement->members[0].claims.size(), 1U);
  EXPECT_EQ(decisions[1].placement->members[0].claims.size(), 0U);
  EXPECT_EQ(decisions[0].placement->members[0].node, decisions[1].placement->members[0].node);
}

TEST_F(PlannerTest, WorksOnSlicesOfAwsOwnDriver) {
  state_.PutNode(NodeFactsOf({.name = "aws", .aws_only = true}));
  EXPECT_EQ(Where(OfShape("a", 1, "2x4", 8)), "aws 2x4x1+0,0,0");
}

}  // namespace
}  // namespace tahoma::controller

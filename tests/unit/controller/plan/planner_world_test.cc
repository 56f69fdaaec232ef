// Gangs whose members differ or share claims, pools that change, numbers at their bounds, and the
// sentence that each cause gets.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "controller/plan/planner.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;

class PlannerWorldTest : public ::testing::Test {
 protected:
  std::vector<Decision> Plan(const std::vector<GangSpec>& gangs) {
    Queue queue;
    for (const GangSpec& gang : gangs) queue.push_back(std::make_shared<const GangSpec>(gang));
    return planner_.Plan(state_, queue, now_);
  }
  Decision PlanOne(const GangSpec& gang) { return Plan({gang})[0]; }
  Decision Run(const GangSpec& gang) {
    Decision decision = PlanOne(gang);
    if (decision.placement) {
      for (auto& h : decision.placement->Holdings(*decision.gang, now_)) state_.Hold(h);
    }
    return decision;
  }
  std::string Why(const GangSpec& gang) {
    const Decision decision = PlanOne(gang);
    if (!decision.blocked) return "placed on " + decision.placement->ToString();
    return fmt::format("{}: {}", ToString(decision.blocked->reason), decision.blocked->message);
  }
  void Occupy(const std::string& node, const std::vector<std::string>& devices) {
    Holding holding;
    holding.claim_uid = fmt::format("held-{}", ++held_);
    holding.holder = "pod default/other";
    for (const std::string& device : devices) {
      holding.devices.push_back({.node = node, .device = device});
    }
    state_.Hold(std::make_shared<const Holding>(std::move(holding)));
  }
  NodeFacts Lone(const std::string& name) { return NodeFactsOf({.name = name}); }

  ClusterState state_;
  Planner planner_;
  WallTime now_ = WallTime(std::chrono::hours(24));
  int held_ = 0;
};

GangSpec PodsOfGang(const std::string& name, const std::vector<std::int64_t>& chips,
                    const std::string& shape = "") {
  std::size_t next = 0;
  GangSpec gang = GangOf(name, static_cast<int>(chips.size()),
                         [&](const std::string& pod) { return ChipClaim(pod, chips[next++]); });
  gang.shape_text = shape;
  return gang;
}

NodeRequirement NodeIs(const std::string& name) {
  return {.key = "metadata.name", .op = NodeOperator::kIn, .values = {name}, .field = true};
}

// Chips of the fleet by node that a placement gives.
std::set<std::string> GivenDevices(const Decision& decision) {
  std::set<std::string> given;
  for (const MemberPlacement& member : decision.placement->members) {
    for (const ClaimPlacement& claim : member.claims) {
      EXPECT_EQ(claim.allocation.node, member.node);
      for (const DeviceResult& result : claim.allocation.results) {
        EXPECT_TRUE(given.insert(member.node + "/" + result.device).second);
      }
    }
  }
  return given;
}

// ---- Nodes that publish a part -----------------------------------------------------------------

TEST_F(PlannerWorldTest, CoresOfANodeThatPublishesNothingElseAreGivenOnce) {
  NodeFacts facts = Lone("n0");
  std::erase_if(facts.devices, [](const Device& d) { return !d.name.starts_with("neuron-core-"); });
  state_.PutNode(facts);
  std::set<std::string> given;
  for (int i = 0; i < 17; ++i) {
    const Decision decision = Run(GangOf(
        fmt::format("p{}", i), 1, [](const std::string& pod) { return CoreClaim(pod, 2, 4); }));
    ASSERT_EQ(decision.placement.has_value(), i < 16) << i;
    if (!decision.placement) continue;
    for (const std::string& device : GivenDevices(decision))
      EXPECT_TRUE(given.insert(device).second);
  }
  EXPECT_EQ(given.size(), 64U);
}

TEST_F(PlannerWorldTest, AWholeNodeThatPublishesNothingElseIsGivenOnce) {
  NodeFacts facts =
      NodeFactsOf({.name = "n0", .type = "trn2u.48xlarge", .ultra_server = "us-0", .z = 3});
  std::erase_if(facts.devices, [](const Device& d) { return d.name != "neuron-node"; });
  state_.PutNode(facts);
  const auto pod = [](const std::string& name) {
    return GangOf(name, 1, [](const std::string& p) { return NodeClaim(p); });
  };
  EXPECT_TRUE(Run(pod("a")).placement);
  const Decision second = Run(pod("b"));
  ASSERT_TRUE(second.blocked);
  EXPECT_EQ(second.blocked->reason, BlockedReason::kWaitsForCapacity);
  EXPECT_THAT(second.blocked->message, HasSubstr("pod default/a (16 chips)"));
}

TEST_F(PlannerWorldTest, ACoreThatIsNoLongerPublishedKeepsItsChipFromOthers) {
  state_.PutNode(Lone("n0"));
  Occupy("n0", {"neuron-core-0-lnc2-0"});
  state_.PutNode(NodeFactsOf({.name = "n0", .cores = false}));
  EXPECT_THAT(Why(PodsOfGang("a", {16})), HasSubstr("in the way: pod default/other (1 chip)"));
  const Decision fifteen = Run(PodsOfGang("b", {15}));
  ASSERT_TRUE(fifteen.placement);
  EXPECT_FALSE(GivenDevices(fifteen).contains("n0/neuron-device-0"));
}

// ---- Claims that pods share --------------------------------------------------------------------

TEST_F(PlannerWorldTest, AClaimThatPodsOfABoxShareIsGivenOnceAndKeepsThemTogether) {
  AddUltraServer(state_, "us-0", false);
  GangSpec gang = GangOf("g", 4, [](const std::string& pod) { return ChipClaim(pod, 16); });
  gang.members[1].claims = gang.members[0].claims;
  gang.members[3].claims = gang.members[2].claims;
  gang.shape_text = "4x4x2";
  const Decision decision = Run(gang);
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  EXPECT_EQ(GivenDevices(decision).size(), 32U);
  const auto& members = decision.placement->members;
  EXPECT_EQ(members[0].node, members[1].node);
  EXPECT_EQ(members[2].node, members[3].node);
  EXPECT_NE(members[0].node, members[2].node);
  EXPECT_TRUE(members[1].claims.empty());
  EXPECT_EQ(state_.Count().free, 32U);
}

TEST_F(PlannerWorldTest, PodsThatShareAClaimAreInOneBoxAndOnOneNode) {
  AddUltraServer(state_, "us-0", false);
  GangSpec apart = PodsOfGang("g", {16, 16}, "4x4");
  apart.slices = 2;
  apart.members[1].claims.push_back(apart.members[0].claims[0]);
  EXPECT_EQ(Why(apart),
            "Invalid: pods default/g-0 and default/g-1 share claim default/g-0-claim, but are in "
            "different boxes");
  // Two nodes' worth of chips, and one claim for both pods: no rotation helps.
  GangSpec torn = PodsOfGang("h", {16, 16}, "4x4x2");
  const ClaimSpec shared = [] {
    ClaimSpec claim = ChipClaim("shared", 1);
    claim.requests[0].alternatives[0].admin_access = true;
    return claim;
  }();
  for (MemberSpec& member : torn.members) member.claims.push_back(shared);
  EXPECT_FALSE(PlanOne(torn).placement);
}

TEST_F(PlannerWorldTest, PodsWithoutABoxFollowTheClaimThatTheyShare) {
  for (const char* name : {"n0", "n1"}) state_.PutNode(Lone(name));
  GangSpec gang = PodsOfGang("g", {12, 4, 12});
  gang.members[2].claims = {gang.members[0].claims[0]};
  gang.members[1].claims.push_back(gang.members[0].claims[0]);
  const Decision decision = Run(gang);
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  EXPECT_EQ(GivenDevices(decision).size(), 16U);
  for (const MemberPlacement& m : decision.placement->members) {
    EXPECT_EQ(m.node, decision.placement->members[0].node);
  }
}

TEST_F(PlannerWorldTest, AGangThatSharesIsNotAnsweredLikeOneThatDoesNot) {
  state_.PutNode(Lone("n0"));
  Occupy("n0", {"neuron-device-0", "neuron-device-1", "neuron-device-2", "neuron-device-3"});
  GangSpec apart = PodsOfGang("a", {8, 8});
  GangSpec together = PodsOfGang("b", {8, 8});
  together.members[1].claims = together.members[0].claims;
  const auto decisions = Plan({apart, together});
  EXPECT_TRUE(decisions[0].blocked);
  EXPECT_TRUE(decisions[1].placement) << decisions[1].blocked->message;
}

TEST_F(PlannerWorldTest, APodWhoseClaimIsHeldIsNotAnsweredLikeOneWhoseIsNot) {
  state_.PutNode(Lone("n0"));
  const Decision first = Run(PodsOfGang("first", {16}));
  ASSERT_TRUE(first.placement);
  GangSpec waits = PodsOfGang("a", {16});
  GangSpec shares = PodsOfGang("b", {16});
  shares.members[0].claims = first.gang->members[0].claims;
  const auto decisions = Plan({waits, shares});
  EXPECT_TRUE(decisions[0].blocked);
  ASSERT_TRUE(decisions[1].placement) << decisions[1].blocked->message;
  EXPECT_EQ(decisions[1].placement->members[0].node, "n0");
}

TEST_F(PlannerWorldTest, APodThatIsTiedToANodeByAHeldClaimIsToldSo) {
  for (const char* name : {"n0", "n1"}) state_.PutNode(Lone(name));
  const Decision first = Run(PodsOfGang("first", {16}));
  ASSERT_TRUE(first.placement);
  const std::string node = first.placement->members[0].node;
  GangSpec more = PodsOfGang("b", {4});
  more.members[0].claims.push_back(first.gang->members[0].claims[0]);
  EXPECT_EQ(Why(more), fmt::format("WaitsForCapacity: the pod has a claim that is allocated on "
                                   "node {}, which cannot give it the rest now",
                                   node));
  Run(PodsOfGang("second", {16}));
  GangSpec torn = PodsOfGang("c", {1});
  torn.members[0].claims = {first.gang->members[0].claims[0],
                            PodsOfGang("second", {16}).members[0].claims[0]};
  EXPECT_EQ(Why(torn),
            "Invalid: claims of pod default/c-0 are allocated on different nodes, n0 and n1");
}

// ---- Members that differ -----------------------------------------------------------------------

TEST_F(PlannerWorldTest, AnUnchoosyMemberDoesNotTakeThePlaceOfAChoosyOne) {
  for (const char* name : {"n0", "n1"}) state_.PutNode(Lone(name));
  GangSpec gang = PodsOfGang("g", {1, 16});
  gang.members[1].node.all = {NodeIs("n0")};
  const Decision decision = Run(gang);
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  EXPECT_EQ(decision.placement->members[0].node, "n1");
  EXPECT_EQ(decision.placement->members[1].node, "n0");
  EXPECT_EQ(decision.placement->members[1].rank, 1);
}

TEST_F(PlannerWorldTest, SmallMembersDoNotBreakUpTheNodesThatLargeOnesNeed) {
  for (const char* name : {"n0", "n1"}) state_.PutNode(Lone(name));
  const Decision decision = Run(PodsOfGang("g", {6, 6, 10, 10}));
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  EXPECT_EQ(GivenDevices(decision).size(), 32U);
}

TEST_F(PlannerWorldTest, AGangOfMorePodsThanTheFleetCanHoldNeverFits) {
  for (const char* name : {"n0", "n1"}) state_.PutNode(Lone(name));
  EXPECT_EQ(Why(PodsOfGang("g", {16, 16, 16})),
            "NeverFits: 3 pods need 16 chips of one node each; the nodes that have them can hold 2 "
            "of these pods, even with nothing running");
  EXPECT_EQ(Why(PodsOfGang("h", {9, 9, 9})).substr(0, 10), "NeverFits:");
  Occupy("n0", {"neuron-device-0"});
  EXPECT_EQ(Why(PodsOfGang("i", {16, 16})),
            "WaitsForCapacity: the pod of rank 1 needs 16 chips of one node, beside those of 1 "
            "pod before it; 2 nodes could give them, the most free chips are 16 on n1; in the way: "
            "pod default/other (1 chip)");
}

TEST_F(PlannerWorldTest, MoreBoxesThanTheFleetHasNeverFit) {
  AddUltraServer(state_, "us-0", false);
  GangSpec gang = PodsOfGang("g", {16, 16, 16, 16, 16, 16, 16, 16}, "4x4x4");
  gang.slices = 2;
  EXPECT_EQ(Why(gang),
            "NeverFits: needs 2 times 4x4x4 = 64 chips of one topology domain, found 1 of 2; the 1 "
            "domain of the "
            "right kind has room for 1 of them, even with nothing running");
  AddUltraServer(state_, "us-1", false);
  Occupy("us-1-n0", {"neuron-device-0"});
  EXPECT_THAT(Why(gang), HasSubstr("WaitsForCapacity: needs 2 times 4x4x4"));
}

// ---- Sentences ---------------------------------------------------------------------------------

TEST_F(PlannerWorldTest, ABoxOnACordonedNodeIsNotCalledBroken) {
  NodeFacts facts = Lone("n0");
  facts.schedulable = false;
  state_.PutNode(facts);
  const std::string could =
      "NeverFits: needs 4x4x1 = 16 chips of one topology domain; 1 domain could hold it, but none "
      "admits it: "
      "0/1 "
      "nodes: ";
  EXPECT_EQ(Why(PodsOfGang("g", {16}, "4x4")), could + "1 cordoned");
  state_.PutNode(Lone("n0"));
  GangSpec elsewhere = PodsOfGang("h", {16}, "4x4");
  elsewhere.members[0].node.all = {NodeIs("n7")};
  EXPECT_EQ(Why(elsewhere), could + "1 not matching the node selector");
  facts = Lone("n0");
  facts.taints = {{.key = "team", .value = "red"}};
  state_.PutNode(facts);
  EXPECT_EQ(Why(PodsOfGang("i", {16}, "4x4")), could + "1 with taint team=red not tolerated");
}

TEST_F(PlannerWorldTest, EachCauseThatKeepsNodesAwayIsCountedByItsName) {
  for (int i = 0; i < 640; ++i) {
    NodeFacts facts = NodeFactsOf({.name = fmt::format("n{:03}", i), .cores = false});
    facts.ready = i >= 600;
    facts.schedulable = i < 600;
    if (!facts.ready) {
      facts.taints = {{.key = "node.kubernetes.io/unreachable",
                       .value = "",
                       .effect = TaintEffect::kNoExecute}};
    }
    state_.PutNode(std::move(facts));
  }
  EXPECT_EQ(
      Why(PodsOfGang("p", {16})),
      "WaitsForRepair: 640 nodes have the devices that the pod asks for, but none admits it: 0/640 "
      "nodes: 600 not ready, 40 cordoned");
  EXPECT_EQ(Why(PodsOfGang("g", {16}, "4x4")),
            "WaitsForRepair: needs 4x4x1 = 16 chips of one topology domain; 640 domains could hold "
            "it, but none "
            "admits it: 0/640 nodes: 600 not ready, 40 cordoned");
}

TEST_F(PlannerWorldTest, TheCauseThatOutlastsARepairIsNamed) {
  NodeFacts facts = Lone("n0");
  facts.ready = false;
  facts.schedulable = false;
  state_.PutNode(facts);
  const std::string has =
      "NeverFits: 1 node has the devices that the pod asks for, but none admits it: ";
  EXPECT_EQ(Why(PodsOfGang("p", {16})), has + "0/1 nodes: 1 cordoned");
  facts.schedulable = true;
  facts.taints = {{.key = "node.kubernetes.io/not-ready", .value = ""},
                  {.key = "team", .value = "red"}};
  state_.PutNode(facts);
  EXPECT_EQ(Why(PodsOfGang("p", {16})), has + "0/1 nodes: 1 with taint team=red not tolerated");
  // Ready again, and the taint that says otherwise is about to go.
  facts.ready = true;
  facts.taints.pop_back();
  state_.PutNode(facts);
  EXPECT_EQ(Why(PodsOfGang("p", {16})),
            "WaitsForRepair: 1 node has the devices that the pod asks for, but none admits it: 0/1 "
            "nodes: "
            "1 not ready");
}

TEST_F(PlannerWorldTest, AHealthyNodeInADomainWithoutABoxIsNotBlamed) {
  AddUltraServer(state_, "us-0", false);
  NodeFacts away = NodeFactsOf({.name = "us-0-n2",
                                .type = "trn2u.48xlarge",
                                .ultra_server = "us-0",
                                .z = 2,
                                .cores = false});
  away.schedulable = false;
  state_.PutNode(away);
  EXPECT_EQ(Why(PodsOfGang("g", {16, 16, 16, 16}, "4x4x4")),
            "NeverFits: needs 4x4x4 = 64 chips of one topology domain; 1 domain could hold it, but "
            "none admits "
            "it: 0/4 "
            "nodes: 3 in domains without such a box, 1 cordoned");
}

TEST_F(PlannerWorldTest, CausesOfNodesAndOfTheirDevicesStandSideBySide) {
  NodeFacts away = Lone("n0");
  away.ready = false;
  state_.PutNode(away);
  state_.PutNode(NodeFactsOf({.name = "n1", .broken = 0xff00}));
  state_.PutNode(NodeFactsOf({.name = "n2", .type = "trn2.3xlarge"}));
  NodeFacts red = Lone("n3");
  red.taints = {{.key = "team", .value = "red"}};
  state_.PutNode(red);
  NodeFacts elsewhere = Lone("n4");
  state_.PutNode(elsewhere);
  GangSpec pod = PodsOfGang("p", {12});
  pod.members[0].node.any_term = {
      {{.key = "metadata.name", .op = NodeOperator::kNotIn, .values = {"n4"}, .field = true}}};
  EXPECT_EQ(Why(pod),
            "WaitsForRepair: the pod: no node can meet all its requests and constraints at once, "
            "even with nothing running (1 node tried); 0/5 nodes: 1 not matching node affinity, 1 "
            "not ready, 1 with taint team=red not tolerated, 1 with unhealthy chips or links, 1 "
            "without devices that match");
  Occupy("n4", {"neuron-device-0", "neuron-device-1", "neuron-device-2", "neuron-device-3",
                "neuron-device-4"});
  pod.members[0].node.any_term.clear();
  EXPECT_THAT(Why(pod),
              HasSubstr("WaitsForCapacity: the pod needs 12 chips of one node; 1 node "
                        "could give them, the most free chips are 11 on n4; 0/5 nodes: "
                        "1 not ready, 1 with taint team=red not tolerated, 1 with too few "
                        "free chips, 1 with unhealthy chips or links, 1 without devices "
                        "that match"));
}

TEST_F(PlannerWorldTest, APodGoesWhereItsVolumeIsOrSaysThatItIsElsewhere) {
  for (const char* name : {"n0", "n1", "n2"}) state_.PutNode(Lone(name));
  GangSpec pod = PodsOfGang("p", {4});
  const auto on = [](const char* node) {
    return kube::NodeTerms{{{.key = "metadata.name", .values = {node}, .field = true}}};
  };
  pod.members[0].node.volumes = {{.claim = "data", .nodes = on("n1")}};
  EXPECT_EQ(PlanOne(pod).placement.value().members.at(0).node, "n1");
  pod.members[0].node.volumes.push_back({.claim = "logs", .nodes = on("n2")});
  EXPECT_THAT(Why(pod),
              HasSubstr("0/3 nodes: 2 had volume node affinity conflict (persistentvolumeclaim "
                        "\"data\"), 1 had volume node affinity conflict (persistentvolumeclaim "
                        "\"logs\")"));
}

TEST_F(PlannerWorldTest, AGangThatWaitsOnlyForARepairIsNotToldThatItNeverFits) {
  AddUltraServer(state_, "us-0", false);
  NodeFacts away = NodeFactsOf({.name = "us-0-n2",
                                .type = "trn2u.48xlarge",
                                .ultra_server = "us-0",
                                .z = 2,
                                .cores = false});
  away.ready = false;
  state_.PutNode(away);
  const GangSpec whole = PodsOfGang("g", {16, 16, 16, 16}, "4x4x4");
  EXPECT_THAT(Why(whole), HasSubstr("WaitsForRepair: needs 4x4x4"));
  away.ready = true;
  away.devices[3].taints.push_back({"tahoma.dev/unhealthy", "hbm", TaintEffect::kNoExecute});
  state_.PutNode(away);
  EXPECT_THAT(Why(whole), HasSubstr("WaitsForRepair: needs 4x4x4"));
  EXPECT_THAT(Why(PodsOfGang("p", {16, 16, 16, 16})),
              HasSubstr("WaitsForRepair: 4 pods need 16 chips"));
  EXPECT_THAT(Why(PodsOfGang("q", {16, 16, 16, 16, 16})),
              HasSubstr("NeverFits: 5 pods need 16 chips"));
  GangSpec two = PodsOfGang("h", {16, 16, 16, 16, 16, 16, 16, 16}, "4x4x4");
  two.slices = 2;
  EXPECT_THAT(Why(two), HasSubstr("NeverFits: needs 2 times 4x4x4"));
  away.devices[3].taints.pop_back();
  away.devices[3].attributes.push_back({{"tahoma.dev", "linksDown"}, std::string("x+")});
  state_.PutNode(away);
  EXPECT_THAT(Why(whole), HasSubstr("WaitsForRepair: needs 4x4x4"));
  away.devices[3].attributes.pop_back();
  state_.PutNode(away);
  EXPECT_EQ(Why(whole), "placed on us-0 4x4x4+0,0,0");
}

TEST_F(PlannerWorldTest, ABoxThatIsLargerThanEveryDomainIsCalledSo) {
  for (const char* name : {"n0", "n1", "n2", "n3"}) state_.PutNode(Lone(name));
  EXPECT_EQ(Why(PodsOfGang("g", {16, 16, 16, 16}, "4x4x4")),
            "NeverFits: needs 4x4x4 = 64 chips of one topology domain; 4 domains have its devices, "
            "but none is "
            "that large");
}

TEST_F(PlannerWorldTest, AnInstanceTypeThatIsNotKnownHasNoShapes) {
  NodeFacts facts = NodeFactsOf({.name = "n0", .cores = false});
  for (Device& device : facts.devices) {
    for (Attribute& a : device.attributes) {
      if (a.name.id == "instanceType") a.value = std::string("trn9.48xlarge");
    }
  }
  state_.PutNode(facts);
  EXPECT_EQ(Why(PodsOfGang("g", {16}, "4x4")),
            "NeverFits: needs 4x4x1 = 16 chips of one topology domain; 1 domain has its devices, "
            "but none is of "
            "an instance type whose chips form boxes");
  EXPECT_TRUE(Run(PodsOfGang("h", {16})).placement) << "chips without a shape are chips";
}

TEST_F(PlannerWorldTest, TheMemberThatNothingMatchesIsTheOneNamed) {
  AddUltraServer(state_, "us-0", false);
  GangSpec gang = PodsOfGang("g", {16, 16}, "4x4x2");
  gang.members[1].claims[0].requests[0].alternatives[0].selectors = {
      "device.attributes['neuron.aws.com'].instanceType == 'trn3'"};
  EXPECT_THAT(Why(gang), HasSubstr("NeverFits: the pod of rank 1 asks for 16 devices"));
}

TEST_F(PlannerWorldTest, FreeChipsThatDoNotMeetTheConstraintsAreNotCalledTooFew) {
  state_.PutNode(Lone("n0"));
  Occupy("n0", {"neuron-device-0", "neuron-device-5", "neuron-device-10", "neuron-device-15"});
  GangSpec gang = PodsOfGang("p", {4});
  gang.members[0].claims[0].constraints = {
      {.requests = {}, .attribute = "resource.aws.com/devicegroup4_id"}};
  EXPECT_EQ(Why(gang),
            "WaitsForCapacity: the pod needs 4 chips of one node; 1 node could give them, the most "
            "free chips are 12 on n0, but not such as its selectors and constraints ask for; in "
            "the way: pod default/other (4 chips)");
}

TEST_F(PlannerWorldTest, ASelectorsErrorNamesADeviceThatExists) {
  state_.PutNode(Lone("gone"));
  GangSpec gang = PodsOfGang("p", {1});
  gang.members[0].claims[0].requests[0].alternatives[0].selectors = {
      "device.attributes['neuron.aws.com'].color == 'red'"};
  EXPECT_THAT(Why(gang), HasSubstr("of node gone"));
  state_.RemoveNode("gone");
  state_.PutNode(Lone("here"));
  EXPECT_THAT(Why(gang), HasSubstr("of node here"));
}

TEST_F(PlannerWorldTest, MoreDevicesThanAClaimCanHaveAreRefusedWithThatNumber) {
  state_.PutNode(Lone("n0"));
  GangSpec gang = GangOf("p", 1, [](const std::string& pod) { return CoreClaim(pod, 1, 20); });
  gang.members[0].claims[0].requests.push_back(gang.members[0].claims[0].requests[0]);
  gang.members[0].claims[0].requests[1].name = "more";
  EXPECT_EQ(Why(gang),
            "Invalid: claim default/p-0-claim asks for 40 devices; a claim can have 1 to 32");
}

// ---- Numbers at their bounds -------------------------------------------------------------------

TEST_F(PlannerWorldTest, ChipsThatOverflowAreRefused) {
  AddUltraServer(state_, "us-0", false);
  for (const std::int64_t chips :
       {std::int64_t{64} << 32, std::numeric_limits<std::int64_t>::max() / 64 * 64,
        std::numeric_limits<std::int64_t>::min() + 1, std::int64_t{-64}, std::int64_t{0},
        (std::int64_t{1} << 32) + 16}) {
    GangSpec gang = PodsOfGang("g", {16, 16, 16, 16});
    gang.chips = chips;
    EXPECT_EQ(Why(gang).substr(0, 8), "Invalid:") << chips;
  }
  GangSpec many = PodsOfGang("g", {16, 16, 16, 16});
  many.chips = 65536;
  many.slices = std::numeric_limits<int>::max();
  EXPECT_EQ(Why(many).substr(0, 8), "Invalid:");
}

TEST_F(PlannerWorldTest, ARuntimeOfAMillionYearsIsFarAwayNotPast) {
  state_.PutNode(Lone("n0"));
  GangSpec gang = PodsOfGang("g", {4});
  gang.max_runtime = std::chrono::seconds(std::numeric_limits<std::int64_t>::max());
  const Decision decision = Run(gang);
  ASSERT_TRUE(decision.placement);
  EXPECT_EQ(decision.placement->Holdings(gang, now_)[0]->end, WallTime::max());
  EXPECT_TRUE(Run(PodsOfGang("h", {4})).placement);
  GangSpec again = gang;
  again.members = PodsOfGang("i", {4}).members;
  EXPECT_TRUE(Run(again).placement);
}

// ---- Choice ------------------------------------------------------------------------------------

TEST_F(PlannerWorldTest, AWorkingBoxOfTheDomainIsPreferredToOneWithABrokenLink) {
  for (const int z : {0, 1}) {
    FleetNode node{.name = fmt::format("n{}", z),
                   .type = "trn2u.48xlarge",
                   .ultra_server = "us-0",
                   .z = z,
                   .cores = false};
    if (z == 0) node.links_down = {"x+"};
    state_.PutNode(NodeFactsOf(node));
  }
  std::vector<std::string> busy;
  for (int chip = 0; chip < 16; ++chip) {
    if (chip != 0 && chip != 1 && chip != 4 && chip != 5) {
      busy.push_back(fmt::format("neuron-device-{}", chip));
    }
  }
  Occupy("n0", busy);
  const Decision decision = Run(PodsOfGang("p", {4}));
  ASSERT_TRUE(decision.placement);
  EXPECT_EQ(decision.placement->members[0].node, "n1");
}

TEST_F(PlannerWorldTest, TolerationsWithSecondsTolerateAndAreCopied) {
  state_.PutNode(NodeFactsOf({.name = "n0", .broken = 0xffff}));
  GangSpec gang = PodsOfGang("p", {2});
  Toleration toleration{.key = "tahoma.dev/unhealthy",
                        .op = TolerationOperator::kExists,
                        .value = "",
                        .effect = TaintEffect::kNoExecute,
                        .seconds = 0};
  gang.members[0].claims[0].requests[0].alternatives[0].tolerations = {toleration};
  const Decision decision = Run(gang);
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  EXPECT_EQ(decision.placement->members[0].claims[0].allocation.results[0].tolerations[0],
            toleration);
}

TEST_F(PlannerWorldTest, CoresOfABrokenChipAreGivenToThoseWhoTolerateIt) {
  NodeFacts facts = NodeFactsOf({.name = "n0", .broken = 0xffff});
  for (Device& device : facts.devices) {
    if (!device.name.starts_with("neuron-core-")) continue;
    device.taints.push_back(
        {.key = "tahoma.dev/unhealthy", .value = "hbm", .effect = TaintEffect::kNoExecute});
  }
  state_.PutNode(facts);
  GangSpec gang = GangOf("p", 1, [](const std::string& pod) { return CoreClaim(pod, 2, 2); });
  EXPECT_TRUE(PlanOne(gang).blocked);
  gang.members[0].claims[0].requests[0].alternatives[0].tolerations = {
      {.key = "tahoma.dev/unhealthy",
       .op = TolerationOperator::kExists,
       .value = "",
       .effect = std::nullopt,
       .seconds = std::nullopt}};
  const Decision decision = Run(gang);
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  EXPECT_EQ(GivenDevices(decision).size(), 2U);
}

TEST_F(PlannerWorldTest, WhetherAGangFitsDoesNotDependOnTheOrderInWhichNodesCame) {
  std::vector<NodeFacts> nodes;
  for (const char* id : {"us-0", "us-1"}) {
    for (int z = 0; z < 4; ++z) {
      nodes.push_back(NodeFactsOf({.name = fmt::format("{}-n{}", id, z),
                                   .type = "trn2u.48xlarge",
                                   .ultra_server = id,
                                   .z = z,
                                   .cores = false,
                                   .broken = static_cast<std::uint16_t>(z == 1 ? 0x0011 : 0)}));
    }
  }
  nodes.push_back(NodeFactsOf({.name = "lone", .cores = false}));
  const std::vector<GangSpec> gangs = {PodsOfGang("a", {16, 16}, "4x4x2"),
                                       PodsOfGang("b", {8}, "2x4"), PodsOfGang("c", {16, 16, 16}),
                                       PodsOfGang("d", {4, 8, 4}),
                                       PodsOfGang("e", {16, 16, 16, 16}, "4x4x4")};
  std::set<std::string> answers;
  std::sort(nodes.begin(), nodes.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  for (int round = 0; round < 20; ++round) {
    std::rotate(nodes.begin(), nodes.begin() + 2, nodes.end());
    if (round % 3 == 0) std::reverse(nodes.begin(), nodes.end());
    ClusterState state;
    for (const NodeFacts& facts : nodes) state.PutNode(facts);
    std::string answer;
    for (const GangSpec& gang : gangs) {
      const Decision decision =
          Planner().Plan(state, {std::make_shared<const GangSpec>(gang)}, now_)[0];
      answer += decision.placement ? "+" : std::string(ToString(decision.blocked->reason));
    }
    answers.insert(answer);
  }
  EXPECT_EQ(answers.size(), 1U) << ::testing::PrintToString(answers);
}

}  // namespace
}  // namespace tahoma::controller

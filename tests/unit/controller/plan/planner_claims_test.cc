// Tests the requests of a claim beside the number of chips: attributes that must match or differ,
// alternatives in order, all devices, whole nodes, tolerations, and how long its gang will run.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "controller/plan/planner.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

constexpr const char* kGroup4 = "resource.aws.com/devicegroup4_id";
constexpr const char* kGroup8 = "resource.aws.com/devicegroup8_id";

ClaimRequest Request(const std::string& name, std::int64_t count) {
  ClaimRequest request = ChipClaim("any", count).requests[0];
  request.name = name;
  return request;
}

GangSpec PodOf(const std::string& name, ClaimSpec claim) {
  return GangOf(name, 1, [&](const std::string& pod) {
    claim.key = {"default", pod + "-claim"};
    claim.uid = "uid-" + pod + "-claim";
    return claim;
  });
}

class PlannerClaimsTest : public ::testing::Test {
 protected:
  Decision Run(GangSpec gang) {
    auto decisions =
        planner_.Plan(state_, {std::make_shared<const GangSpec>(std::move(gang))}, now_);
    EXPECT_EQ(decisions.size(), 1U);
    if (decisions[0].placement) {
      for (auto& h : decisions[0].placement->Holdings(*decisions[0].gang, now_)) state_.Hold(h);
    }
    return decisions[0];
  }
  // The devices that a pod with that claim gets, or why it waits.
  Names DevicesFor(const std::string& pod, ClaimSpec claim) {
    const Decision decision = Run(PodOf(pod, std::move(claim)));
    if (decision.blocked) {
      return {std::string(ToString(decision.blocked->reason)), decision.blocked->message};
    }
    Names devices;
    for (const ClaimPlacement& placed : decision.placement->members[0].claims) {
      for (const DeviceResult& result : placed.allocation.results) devices.push_back(result.device);
    }
    return devices;
  }
  // Somebody holds these chips of the node.
  void Occupy(const std::string& node, const std::vector<int>& chips,
              std::optional<WallTime> end = std::nullopt) {
    Holding holding;
    holding.claim_uid = "held-" + node + std::to_string(++held_);
    holding.claim = {"default", holding.claim_uid};
    holding.holder = "pod default/other";
    holding.end = end;
    for (const int chip : chips) {
      holding.devices.push_back({.node = node, .device = "neuron-device-" + std::to_string(chip)});
    }
    state_.Hold(std::make_shared<const Holding>(std::move(holding)));
  }

  ClusterState state_;
  Planner planner_;
  WallTime now_ = WallTime(std::chrono::hours(24));
  int held_ = 0;
};

ClaimSpec Matching(std::int64_t count, const std::string& attribute) {
  ClaimSpec claim = ChipClaim("any", count);
  claim.constraints = {{.requests = {"neurons"}, .attribute = attribute}};
  return claim;
}

// ---- matchAttribute ----------------------------------------------------------------------------

TEST_F(PlannerClaimsTest, DevicesOfOneGroupShareARow) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  Occupy("n0", {0, 5, 10});
  EXPECT_THAT(
      DevicesFor("p", Matching(4, kGroup4)),
      ElementsAre("neuron-device-12", "neuron-device-13", "neuron-device-14", "neuron-device-15"))
      << "the only group that is free";
  const Names second = DevicesFor("q", Matching(4, kGroup4));
  EXPECT_EQ(second[0], "WaitsForCapacity") << "nine chips are free, but no group is";
}

TEST_F(PlannerClaimsTest, ALargerGroupTakesDevicesOfTwoRows) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  Occupy("n0", {0});
  EXPECT_THAT(
      DevicesFor("p", Matching(8, kGroup8)),
      ElementsAre("neuron-device-8", "neuron-device-9", "neuron-device-10", "neuron-device-11",
                  "neuron-device-12", "neuron-device-13", "neuron-device-14", "neuron-device-15"));
}

TEST_F(PlannerClaimsTest, MoreDevicesThanAGroupHasNeverFit) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  const Names answer = DevicesFor("p", Matching(5, kGroup4));
  EXPECT_EQ(answer[0], "NeverFits") << answer[1];
}

TEST_F(PlannerClaimsTest, TwoRequestsOfAConstraintShareTheGroup) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  ClaimSpec claim = ChipClaim("any", 1);
  claim.requests = {Request("a", 2), Request("b", 2), Request("free", 1)};
  claim.constraints = {{.requests = {"a", "b"}, .attribute = kGroup4}};
  Occupy("n0", {0, 1, 4, 8});
  const Names devices = DevicesFor("p", claim);
  ASSERT_EQ(devices.size(), 5U) << devices.back();
  EXPECT_THAT(Names(devices.begin(), devices.begin() + 4),
              ::testing::UnorderedElementsAre("neuron-device-12", "neuron-device-13",
                                              "neuron-device-14", "neuron-device-15"));
}

TEST_F(PlannerClaimsTest, AnAttributeThatNoDeviceHasNeverMatches) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  EXPECT_EQ(DevicesFor("p", Matching(1, "example.com/rack"))[0], "NeverFits");
}

TEST_F(PlannerClaimsTest, AConstraintWithoutRequestsIsForAll) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  ClaimSpec claim = ChipClaim("any", 1);
  claim.requests = {Request("a", 3), Request("b", 2)};
  claim.constraints = {{.requests = {}, .attribute = kGroup4}};
  EXPECT_EQ(DevicesFor("p", claim)[0], "NeverFits") << "five devices of one group of four";
}

// ---- distinctAttribute -------------------------------------------------------------------------

ClaimSpec Distinct(std::int64_t count, const std::string& attribute) {
  ClaimSpec claim = Matching(count, attribute);
  claim.constraints[0].distinct = true;
  return claim;
}

TEST_F(PlannerClaimsTest, DistinctDevicesAreOfDifferentGroups) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  Occupy("n0", {0, 8});
  const Names devices = DevicesFor("p", Distinct(4, kGroup4));
  EXPECT_THAT(devices, ElementsAre("neuron-device-1", "neuron-device-4", "neuron-device-9",
                                   "neuron-device-12"));
  EXPECT_EQ(DevicesFor("q", Distinct(5, kGroup4))[0], "NeverFits") << "there are four groups";
}

TEST_F(PlannerClaimsTest, DistinctRequestsAvoidEachOthersValues) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  ClaimSpec claim = ChipClaim("any", 1);
  claim.requests = {Request("a", 1), Request("b", 1)};
  claim.constraints = {{.requests = {"a", "b"}, .attribute = kGroup8, .distinct = true}};
  const Names devices = DevicesFor("p", claim);
  EXPECT_THAT(devices, ElementsAre("neuron-device-0", "neuron-device-8"));
}

TEST_F(PlannerClaimsTest, ADeviceThatAnotherRequestOfTheClaimTookDoesNotHideItsGroup) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  ClaimSpec claim = ChipClaim("any", 1);
  claim.requests = {Request("row", 4), Request("spread", 2)};
  claim.constraints = {{.requests = {"spread"}, .attribute = kGroup8, .distinct = true}};
  const Names devices = DevicesFor("p", claim);
  ASSERT_EQ(devices.size(), 6U) << devices.back();
  EXPECT_EQ(std::set<std::string>(devices.begin(), devices.end()).size(), 6U);
}

// ---- firstAvailable ----------------------------------------------------------------------------

ClaimSpec FirstOf(const std::vector<std::int64_t>& counts) {
  ClaimSpec claim = ChipClaim("any", 1);
  const DeviceRequest one = claim.requests[0].alternatives[0];
  claim.requests[0].first_available = true;
  claim.requests[0].alternatives.clear();
  for (const std::int64_t count : counts) {
    DeviceRequest alternative = one;
    alternative.name = "take" + std::to_string(count);
    alternative.count = count;
    claim.requests[0].alternatives.push_back(alternative);
  }
  return claim;
}

TEST_F(PlannerClaimsTest, TheFirstAlternativeThatFitsIsTakenAndNamedInTheResult) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  const Decision first = Run(PodOf("p", FirstOf({8, 4})));
  ASSERT_TRUE(first.placement) << first.blocked->message;
  const auto& results = first.placement->members[0].claims[0].allocation.results;
  ASSERT_EQ(results.size(), 8U);
  EXPECT_EQ(results[0].request, "neurons/take8");
}

TEST_F(PlannerClaimsTest, ALaterAlternativeIsTakenWhereTheEarlierHasNoRoom) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  Occupy("n0", {0, 1, 2, 3});
  EXPECT_EQ(DevicesFor("p", FirstOf({16, 8})).size(), 8U);
  const Decision last = Run(PodOf("q", FirstOf({16, 8, 2})));
  ASSERT_TRUE(last.placement) << last.blocked->message;
  EXPECT_EQ(last.placement->members[0].claims[0].allocation.results[0].request, "neurons/take2");
}

TEST_F(PlannerClaimsTest, AnAlternativeThatExistsNowhereIsPassedOver) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  EXPECT_EQ(DevicesFor("p", FirstOf({17, 2})).size(), 2U);
}

TEST_F(PlannerClaimsTest, ConfigurationsOfAlternativesThatWereNotChosenDoNotApply) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  ClaimSpec claim = FirstOf({17, 2});
  const auto config = [](const std::string& request, int lnc) {
    return DeviceConfig{
        .source = ConfigSource::kClaim,
        .requests = {request},
        .driver = "neuron.aws.com",
        .parameters = fmt::format(
            R"({{"apiVersion":"neuron.aws.com/v1","kind":"NeuronConfig","logicalNeuronCore":{}}})",
            lnc)};
  };
  claim.configs = {config("neurons/take17", 1), config("neurons/take2", 2)};
  const Decision decision = Run(PodOf("p", claim));
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  const auto& configs = decision.placement->members[0].claims[0].allocation.configs;
  ASSERT_EQ(configs.size(), 1U);
  EXPECT_EQ(configs[0].requests, (Names{"neurons/take2"}));
}

// ---- All ---------------------------------------------------------------------------------------

TEST_F(PlannerClaimsTest, AllTakesEveryDeviceThatMatchesOrNothing) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  EXPECT_EQ(DevicesFor("p", AllClaim("any")).size(), 16U);
  EXPECT_EQ(DevicesFor("q", AllClaim("any"))[0], "WaitsForCapacity");
  state_.PutNode(NodeFactsOf({.name = "n1"}));
  Occupy("n1", {7});
  EXPECT_EQ(DevicesFor("q", AllClaim("any"))[0], "WaitsForCapacity") << "fifteen are not all";
}

TEST_F(PlannerClaimsTest, AllOfANodeWithABrokenChipWaitsForItsRepair) {
  state_.PutNode(NodeFactsOf({.name = "n0", .broken = 0x0008}));
  EXPECT_EQ(DevicesFor("p", AllClaim("any"))[0], "WaitsForRepair");
}

TEST_F(PlannerClaimsTest, AllMeansTheDevicesThatTheSelectorsLeave) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  Occupy("n0", {0});
  ClaimSpec claim = AllClaim("any");
  claim.requests[0].alternatives[0].selectors = {
      "device.attributes['neuron.aws.com'].deviceId >= 14"};
  EXPECT_THAT(DevicesFor("p", claim), ElementsAre("neuron-device-14", "neuron-device-15"));
}

// ---- Whole nodes -------------------------------------------------------------------------------

TEST_F(PlannerClaimsTest, AWholeNodeIsOneDeviceAndTakesEveryChip) {
  AddUltraServer(state_, "us-0");
  EXPECT_THAT(DevicesFor("p", NodeClaim("any")), ElementsAre("neuron-node"));
  const auto totals = state_.Count();
  EXPECT_EQ(totals.free, 48U);
  EXPECT_EQ(DevicesFor("q", ChipClaim("any", 16)).size(), 16U) << "of another node";
}

TEST_F(PlannerClaimsTest, ANodeInUseOrBrokenIsNotWhole) {
  state_.PutNode(
      NodeFactsOf({.name = "a", .type = "trn2u.48xlarge", .ultra_server = "us-0", .broken = 1}));
  EXPECT_EQ(DevicesFor("p", NodeClaim("any"))[0], "WaitsForRepair");
  state_.PutNode(
      NodeFactsOf({.name = "b", .type = "trn2u.48xlarge", .ultra_server = "us-0", .z = 1}));
  Occupy("b", {3});
  EXPECT_EQ(DevicesFor("p", NodeClaim("any"))[0], "WaitsForCapacity");
}

TEST_F(PlannerClaimsTest, TwoWholeNodesInOneClaimNeverFit) {
  AddUltraServer(state_, "us-0");
  ClaimSpec claim = NodeClaim("any");
  claim.requests[0].alternatives[0].count = 2;
  EXPECT_EQ(DevicesFor("p", claim)[0], "NeverFits");
}

// ---- Taints ------------------------------------------------------------------------------------

Toleration Tolerating(const std::string& key, TolerationOperator op,
                      const std::string& value = "") {
  return {.key = key, .op = op, .value = value, .effect = std::nullopt, .seconds = std::nullopt};
}

TEST_F(PlannerClaimsTest, AnUnhealthyChipIsGivenOnlyToThoseWhoTolerateIt) {
  state_.PutNode(NodeFactsOf({.name = "n0", .broken = 0xFFFE}));
  EXPECT_THAT(DevicesFor("p", ChipClaim("any", 1)), ElementsAre("neuron-device-0"));
  EXPECT_EQ(DevicesFor("q", ChipClaim("any", 1))[0], "WaitsForCapacity");
  ClaimSpec brave = ChipClaim("any", 1);
  brave.requests[0].alternatives[0].tolerations = {
      Tolerating("tahoma.dev/unhealthy", TolerationOperator::kEqual, "dma")};
  EXPECT_EQ(DevicesFor("r", brave)[0], "WaitsForCapacity") << "another value";
  brave.requests[0].alternatives[0].tolerations = {
      Tolerating("tahoma.dev/unhealthy", TolerationOperator::kExists)};
  const Decision decision = Run(PodOf("s", brave));
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  const DeviceResult& result = decision.placement->members[0].claims[0].allocation.results[0];
  EXPECT_EQ(result.tolerations.size(), 2U) << "the claim's and ours";
  EXPECT_EQ(result.tolerations[0].key, "tahoma.dev/unhealthy");
}

TEST_F(PlannerClaimsTest, ATaintOfTheNodeKeepsPodsAwayThatDoNotTolerateIt) {
  NodeFacts facts = NodeFactsOf({.name = "n0"});
  facts.taints = {{.key = "team", .value = "red", .effect = TaintEffect::kNoSchedule}};
  state_.PutNode(facts);
  EXPECT_EQ(Run(PodOf("p", ChipClaim("any", 1))).placement, std::nullopt);
  GangSpec tolerant = PodOf("q", ChipClaim("any", 1));
  tolerant.members[0].node.tolerations = {Tolerating("team", TolerationOperator::kEqual, "red")};
  EXPECT_TRUE(Run(tolerant).placement);
}

// ---- maxRuntime --------------------------------------------------------------------------------

TEST_F(PlannerClaimsTest, AGangWithAMaxRuntimeGoesWhereItExtendsNoDomainsUse) {
  const std::vector<int> half = {0, 1, 2, 3, 4, 5, 6, 7};
  for (const char* node : {"n0", "n1"}) state_.PutNode(NodeFactsOf({.name = node}));
  Occupy("n0", half, now_ + std::chrono::hours(1));
  Occupy("n1", half, now_ + std::chrono::hours(10));
  GangSpec gang = PodOf("p", ChipClaim("any", 4));
  gang.max_runtime = std::chrono::hours(5);
  const Decision decision = Run(gang);
  ASSERT_TRUE(decision.placement) << decision.blocked->message;
  EXPECT_EQ(decision.placement->members[0].node, "n1") << "which is busy for longer anyway";
  const auto holdings = decision.placement->Holdings(gang, now_);
  ASSERT_EQ(holdings.size(), 1U);
  EXPECT_EQ(holdings[0]->end, now_ + std::chrono::hours(5));
}

TEST_F(PlannerClaimsTest, WithoutAMaxRuntimeTheEndIsUnknown) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  const GangSpec gang = PodOf("p", ChipClaim("any", 4));
  const Decision decision = Run(gang);
  ASSERT_TRUE(decision.placement);
  EXPECT_EQ(decision.placement->Holdings(gang, now_)[0]->end, std::nullopt);
}

// ---- What is refused ---------------------------------------------------------------------------

TEST_F(PlannerClaimsTest, AClassOfAnotherDriverIsSaidToMatchNothing) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  ClaimSpec claim = ChipClaim("any", 1);
  claim.requests[0].alternatives[0].device_class = "gpu.example.com";
  claim.requests[0].alternatives[0].class_selectors = {"device.driver == 'gpu.example.com'"};
  const Names answer = DevicesFor("p", claim);
  EXPECT_EQ(answer[0], "NeverFits");
  EXPECT_THAT(answer[1], HasSubstr("gpu.example.com"));
}

TEST_F(PlannerClaimsTest, ARequestForAnotherDriversDevicesBesideChipsNeverFits) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  ClaimSpec claim = ChipClaim("any", 1);
  claim.requests.push_back(claim.requests[0]);
  claim.requests[1].name = "nics";
  claim.requests[1].alternatives[0].device_class = "efa.example.com";
  claim.requests[1].alternatives[0].class_selectors = {"device.driver == 'efa.example.com'"};
  const Names answer = DevicesFor("p", claim);
  EXPECT_EQ(answer[0], "NeverFits");
  EXPECT_THAT(answer[1], HasSubstr("efa.example.com"));
}

TEST_F(PlannerClaimsTest, ConsumableCapacityIsRefusedByName) {
  state_.PutNode(NodeFactsOf({.name = "n0"}));
  ClaimSpec claim = ChipClaim("any", 1);
  claim.requests[0].alternatives[0].capacities = {{"memory", kube::Quantity::Of(1)}};
  const Names answer = DevicesFor("p", claim);
  EXPECT_EQ(answer[0], "Invalid");
  EXPECT_THAT(answer[1], HasSubstr("capacity"));
}

}  // namespace
}  // namespace tahoma::controller

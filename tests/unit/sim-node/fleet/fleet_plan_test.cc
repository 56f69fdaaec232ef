// Tests which nodes a fleet consists of.

#include "sim-node/fleet/fleet_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "lib/base/status.h"
#include "lib/kube/name.h"

namespace tahoma::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FleetPlan PlanOf(const std::map<std::string, std::string>& types, std::uint32_t nodes = 1000) {
  return {.nodes = nodes, .types = *ParseFleetTypes(types)};
}

TEST(FleetPlanTest, FourNodesThatFollowEachOtherAreAnUltraServer) {
  const FleetPlan plan = PlanOf({{"trn2u.48xlarge", "1"}});
  const VirtualNode node = NodeAt(plan, 7);
  EXPECT_EQ(node.name, "fleet-00007");
  EXPECT_EQ(node.type->name, "trn2u.48xlarge");
  ASSERT_TRUE(node.ultra_server);
  EXPECT_EQ(node.ultra_server->id, "us-fleet-00001");
  EXPECT_EQ(node.ultra_server->node_id, 3);
  EXPECT_FALSE(node.ultra_server->election) << "as wired";
  EXPECT_THAT(node.network_layers, ElementsAre("nn-fleet-1-0", "nn-fleet-2-0", "nn-fleet-3-0"));
  EXPECT_THAT(NodeAt(plan, 62'499).network_layers,
              ElementsAre("nn-fleet-1-3", "nn-fleet-2-30", "nn-fleet-3-488"));
}

TEST(FleetPlanTest, NamesAreDistinctAndOrderedAndNoUltraServerHasTwoNodesInOnePlace) {
  const FleetPlan plan = PlanOf({{"trn2u.48xlarge", "3"}, {"trn2.48xlarge", "2"}}, kFleetNodesMax);
  std::string before;
  std::set<std::pair<std::string, int>> places;
  for (std::uint32_t i = 0; i < plan.nodes; ++i) {
    const VirtualNode node = NodeAt(plan, i);
    ASSERT_LT(before, node.name);
    before = node.name;
    ASSERT_EQ(node.ultra_server.has_value(), node.type->ultra_server);
    if (!node.ultra_server) continue;
    ASSERT_TRUE(places.emplace(node.ultra_server->id, node.ultra_server->node_id).second);
    ASSERT_EQ(NodeAt(plan, i / 4 * 4).ultra_server->id, node.ultra_server->id);
  }
  EXPECT_EQ(places.size(), 60'000U) << "three of five";
}

TEST(FleetPlanTest, EveryPrefixHasTheTypesInTheirProportion) {
  const FleetPlan plan = PlanOf({{"trn2u.48xlarge", "3"}, {"trn2.48xlarge", "1"}});
  std::uint32_t members = 0;
  for (std::uint32_t i = 0; i < plan.nodes; ++i) {
    members += NodeAt(plan, i).type->ultra_server ? 1U : 0U;
    ASSERT_NEAR(members, 0.75 * (i + 1), 4) << i;
  }
}

TEST(FleetPlanTest, TheLargestFleetOfTheLongestNameHasNamesThatKubernetesTakes) {
  FleetPlan plan = PlanOf({{"trn2u.48xlarge", "1"}}, kFleetNodesMax);
  plan.name = std::string(kFleetNameMax, 'a');
  ASSERT_TRUE(CheckFleetName(plan.name).ok());
  const VirtualNode node = NodeAt(plan, kFleetNodesMax - 1);
  EXPECT_FALSE(kube::WrongDns1123Label(node.name)) << node.name;
  EXPECT_FALSE(kube::WrongLabelValue(node.ultra_server->id + "-1"));
  for (const std::string& layer : node.network_layers) EXPECT_FALSE(kube::WrongLabelValue(layer));
}

TEST(FleetPlanTest, ANodeShowsTheDevicesOfARealOne) {
  FleetPlan plan = PlanOf({{"trn2u.48xlarge", "1"}, {"trn2.3xlarge", "1"}});
  for (const std::uint32_t index : {1U, 5U}) {
    const VirtualNode node = NodeAt(plan, index);
    const dra::DevicePool pool = PoolOf(plan, node);
    ASSERT_EQ(pool.groups.size(), 3U);
    const auto chips = static_cast<std::size_t>(node.type->chip_count());
    EXPECT_EQ(pool.groups[0].size(), chips + (node.ultra_server ? 1U : 0U));
    EXPECT_EQ(pool.groups[1].size(), chips * 4);
    EXPECT_EQ(pool.groups[2].size(), chips * 8);
    for (const dra::Device& device : pool.groups[0]) {
      EXPECT_EQ(dra::UnhealthyReason(device), "") << device.name;
    }
  }
  plan.publish = {.chips = true, .lnc1 = false, .lnc2 = false, .node = false};
  EXPECT_EQ(dra::CutIntoSlices(PoolOf(plan, NodeAt(plan, 1))).size(), 1U);
}

TEST(FleetPlanTest, AWrongNameIsSaidWithItsKey) {
  EXPECT_TRUE(CheckFleetName("west-2").ok());
  EXPECT_THAT(Message(CheckFleetName("")), HasSubstr("fleetNodes.name \"\""));
  EXPECT_THAT(Message(CheckFleetName("West")), HasSubstr("fleetNodes.name \"West\""));
  EXPECT_THAT(Message(CheckFleetName(std::string(kFleetNameMax + 1, 'a'))),
              HasSubstr("has 41 characters; at most 40"));
}

TEST(FleetPlanTest, WrongInstanceTypesAreSaidWithWhatWouldBeRight) {
  const auto error = [](const std::map<std::string, std::string>& types) {
    return std::string(Message(ParseFleetTypes(types).status()));
  };
  EXPECT_THAT(error({}), HasSubstr("instanceTypes is empty; name at least one"));
  EXPECT_THAT(error({{"trn9", "1"}}), HasSubstr("\"trn9\" is unknown; known are inf2.xlarge"));
  for (const char* share : {"", "0", "-1", "1.5", "1001", "1 ", "x"}) {
    EXPECT_THAT(error({{"trn2.48xlarge", share}}),
                HasSubstr(fmt::format("trn2.48xlarge is \"{}\"; expected 1 to 1000", share)));
  }
}

TEST(FleetPlanTest, ABrokenChipIsUnhealthyWithAllItsPartitions) {
  FleetPlan plan = PlanOf({{"trn2.48xlarge", "1"}});
  plan.publish = {.chips = true, .lnc1 = false, .lnc2 = true, .node = false};
  const VirtualNode node = NodeAt(plan, 0);
  const auto faults = ParseChipFaults("3=hbm-uncorrectable,15=dead", *node.type);
  ASSERT_TRUE(faults.ok()) << faults.status();
  int unhealthy = 0;
  for (const auto& group : PoolOf(plan, node, *faults).groups) {
    for (const dra::Device& device : group) {
      unhealthy += dra::UnhealthyReason(device).empty() ? 0 : 1;
    }
  }
  EXPECT_EQ(unhealthy, 2 * (1 + 4));
  EXPECT_TRUE(ParseChipFaults("", *node.type)->empty());
}

TEST(FleetPlanTest, WrongFaultsAreSaidWithWhatWouldBeRight) {
  const hw::InstanceType& type = *hw::FindInstanceType("trn2.48xlarge");
  const auto error = [&](const std::string& text) {
    return std::string(Message(ParseChipFaults(text, type).status()));
  };
  for (const char* item : {"16=dead", "-1=dead", "x=dead", "3", "", " 3=dead"}) {
    EXPECT_THAT(error(fmt::format("0=dma,{},4=dma", item)),
                HasSubstr(fmt::format("\"{}\" is no chip and reason; expected 0 to 15", item)));
  }
  EXPECT_THAT(error("3="), HasSubstr("chip 3 has the reason \"\""));
  EXPECT_THAT(error("3=a b"), HasSubstr("chip 3 has the reason \"a b\""));
  EXPECT_THAT(error("3=dma,3=dead"), HasSubstr("chip 3 is named twice"));
}

}  // namespace
}  // namespace tahoma::sim

#include "controller/ctl/draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "lib/base/json.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;

NodeFacts NodeWithChips(const std::string& name, int chips,
                        const std::string& type = "trn2.48xlarge") {
  NodeFacts node;
  node.name = name;
  const std::string driver(kNeuronDriver);
  for (int i = 0; i < chips; ++i) {
    Device device;
    device.name = "neuron-device-" + std::to_string(i);
    device.attributes = {{{driver, "resourceType"}, std::string("neuron_device")},
                         {{driver, "deviceId"}, std::int64_t{i}},
                         {{driver, "instanceType"}, type}};
    node.devices.push_back(std::move(device));
  }
  return node;
}

void Hold(ClusterState& cluster, const std::string& uid, const std::string& holder,
          const std::string& node, std::vector<std::string> devices) {
  auto holding = std::make_shared<Holding>();
  holding->claim_uid = uid;
  holding->holder = holder;
  for (std::string& device : devices) {
    holding->devices.push_back({.node = node, .device = std::move(device), .admin_access = false});
  }
  cluster.Hold(std::move(holding));
}

TEST(DrawTest, AnInstanceIsOnePlaneWithALegend) {
  ClusterState cluster;
  NodeFacts node = NodeWithChips("node-a", 16);
  node.devices[15].taints.push_back({"tahoma.dev/unhealthy", "hbm", TaintEffect::kNoExecute});
  node.devices[14].attributes.push_back(
      {{std::string(kTahomaDomain), "linksDown"}, std::string("x+")});
  cluster.PutNode(std::move(node));
  Hold(cluster, "u1", "gang default/a", "node-a", {"neuron-device-0", "neuron-device-1"});
  Hold(cluster, "u2", "pod default/b", "node-a", {"neuron-device-4"});
  const std::string text = DrawTopology(cluster, {{"gang default/a", "pods a-0"}});
  EXPECT_THAT(text, HasSubstr("  A A . .\n  B . . .\n  . . . .\n  . . ~ !\n"));
  EXPECT_THAT(text, HasSubstr("A  gang default/a  pods a-0\n"));
  EXPECT_THAT(text, HasSubstr("B  pod default/b\n"));
  EXPECT_THAT(text, HasSubstr("Instance node-a  trn2.48xlarge"));

  const Json value = TopologyJson(cluster);
  ASSERT_EQ(value["domains"].size(), 1U);
  const Json& domain = value["domains"][0];
  EXPECT_EQ(domain["kind"], "Instance");
  EXPECT_EQ(domain["freeChips"], 12);
  const Json& chips = domain["nodes"][0]["chips"];
  ASSERT_EQ(chips.size(), 16U);
  EXPECT_EQ(chips[1], (Json{{"chip", 1}, {"state", "held"}, {"holder", "gang default/a"}}));
  EXPECT_EQ(chips[2], (Json{{"chip", 2}, {"state", "free"}}));
  EXPECT_EQ(chips[14], (Json{{"chip", 14}, {"state", "linkDown"}}));
  EXPECT_EQ(chips[15], (Json{{"chip", 15}, {"state", "broken"}}));
  EXPECT_EQ(DomainJson(cluster, "node-a"), value);
  EXPECT_EQ(DomainJson(cluster, "node-b"), std::nullopt);
}

TEST(DrawTest, AnUltraServerIsFourPlanesSideBySide) {
  ClusterState cluster;
  for (int z = 0; z < 4; ++z) {
    NodeFacts node = NodeWithChips("n" + std::to_string(z), 16, "trn2u.48xlarge");
    for (Device& device : node.devices) {
      const std::string ours(kTahomaDomain);
      device.attributes.push_back({{ours, "ultraserverId"}, std::string("us-0")});
      device.attributes.push_back({{ours, "z"}, std::int64_t{z}});
    }
    cluster.PutNode(std::move(node));
  }
  Hold(cluster, "u1", "gang default/a", "n2", {"neuron-device-5"});
  const std::string text = DrawTopology(cluster, {});
  EXPECT_THAT(text, HasSubstr("UltraServer us-0"));
  EXPECT_THAT(text, HasSubstr("  z=0 n0   z=1 n1   z=2 n2   z=3 n3\n"));
  EXPECT_THAT(text, HasSubstr("  . . . .  . . . .  . A . .  . . . .\n"));
}

TEST(DrawTest, AnUltraServerShowsWhatItHasElected) {
  const auto drawn = [](const std::array<std::string, 4>& modes,
                        const std::string& chosen = "unset") {
    ClusterState cluster;
    Elect(cluster, "us-0", modes, chosen);
    const std::string text = DrawTopology(cluster, {});
    return text.substr(0, text.find('\n'));
  };
  const std::string head = "UltraServer us-0  trn2u.48xlarge  64 of 64 chips free";
  EXPECT_EQ(drawn({"", "", "", ""}), head) << "no election";
  EXPECT_EQ(drawn({"X4,X2V,X1", "X4,X2V,X1", "X4,X2V,X1", "X4,X2V,X1"}),
            head + "  modes X4,X2V,X1");
  EXPECT_EQ(drawn({"X4,X2V,X1", "X4,X2V,X1", "X4,X2V,X1", "X4,X2V,X1"}, "X2V"),
            head + "  modes X4,X2V*,X1");
  EXPECT_EQ(drawn({"X2H,X1", "X1", "busy", "X2H,X1"}),
            head + "  modes z=0 X2H,X1  z=1 X1  z=2 electing  z=3 X2H,X1");
}

TEST(DrawTest, ASingleChipIsASingleCell) {
  ClusterState cluster;
  cluster.PutNode(NodeWithChips("small", 1, "trn2.3xlarge"));
  EXPECT_THAT(DrawTopology(cluster, {}), HasSubstr("  small\n  .\n"));
}

TEST(DrawTest, AnEmptyFleetSaysSo) {
  EXPECT_THAT(DrawTopology(ClusterState(), {}), HasSubstr("no nodes"));
}

}  // namespace
}  // namespace tahoma::controller

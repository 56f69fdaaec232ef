#include "controller/ctl/summary.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "controller/ctl/draw.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// A node of an UltraServer under these network layers.
NodeFacts NodeUnder(const std::string& domain, int z, const std::string& one,
                    const std::string& two, const std::string& three) {
  NodeFacts facts = NodeFactsOf({.name = fmt::format("{}-n{}", domain, z),
                                 .type = "trn2u.48xlarge",
                                 .ultra_server = domain,
                                 .z = z,
                                 .cores = false});
  for (Device& device : facts.devices) {
    for (Attribute& attribute : device.attributes) {
      if (attribute.name.id == "networkNodeLayer1") attribute.value = one;
      if (attribute.name.id == "networkNodeLayer2") attribute.value = two;
      if (attribute.name.id == "networkNodeLayer3") attribute.value = three;
    }
  }
  return facts;
}

TEST(SummaryTest, EachLayerIsALineWithItsNodesAndChips) {
  ClusterState cluster;
  for (int u = 0; u < 4; ++u) {
    for (int z = 0; z < 4; ++z) {
      NodeFacts facts = NodeUnder(fmt::format("us-{}", u), z, u < 3 ? "nn-1" : "nn-2",
                                  fmt::format("nn-{}x", u), fmt::format("nn-{}xx", u));
      facts.schedulable = u != 3 || z != 2;
      if (u == 1 && z == 0) facts.devices[7].taints.push_back({"tahoma.dev/unhealthy", "hbm"});
      cluster.PutNode(std::move(facts));
    }
  }
  Holding holding;
  holding.claim_uid = "a";
  holding.devices = {{.node = "us-0-n0", .device = "neuron-device-3"},
                     {.node = "us-0-n0", .device = "neuron-device-4"}};
  cluster.Hold(std::make_shared<const Holding>(holding));
  const std::string text = SummarizeTopology(cluster);
  EXPECT_THAT(text, ContainsRegex("NETWORK LAYER +NODES +NOT READY +ULTRASERVERS +CHIPS +FREE"));
  EXPECT_THAT(text, ContainsRegex("\nnn-1 +12 +0 +3 +192 +189 +2 +1 +1\n"));
  EXPECT_THAT(text, ContainsRegex("\nnn-1/nn-0x +4 +0 +1 +64 +62 +2 +0 +0\n"));
  EXPECT_THAT(text, ContainsRegex("\nnn-2/nn-3x/nn-3xx +4 +1 +1 +64 +48 +0 +0 +0\n"));
  EXPECT_THAT(text, ContainsRegex("\nall +16 +1 +4 +256 +237 +2 +1 +1\n"));
  EXPECT_EQ(text.find("us-"), std::string::npos);
}

TEST(SummaryTest, ManyLayersAreCutAndSaidToBe) {
  ClusterState cluster;
  for (int u = 0; u < 200; ++u) {
    cluster.PutNode(NodeUnder(fmt::format("us-{}", u), 0, fmt::format("nn-{}", u % 5),
                              fmt::format("nn-{}-{}", u % 5, u % 100), fmt::format("z-{}", u)));
  }
  std::string text = SummarizeTopology(cluster);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 5 + 1 + 2);
  for (int u = 0; u < 200; ++u) {
    cluster.PutNode(NodeUnder(fmt::format("us-{}", u), 0, fmt::format("top-{}", u), "b", "c"));
  }
  text = SummarizeTopology(cluster);
  EXPECT_THAT(text, HasSubstr("… and 140 more\n"));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 70);
}

TEST(SummaryTest, NodesWithoutLayersAndNoNodesAreCounted) {
  ClusterState cluster;
  EXPECT_THAT(SummarizeTopology(cluster), ContainsRegex("\nall +0 +0"));
  NodeFacts facts = NodeFactsOf({.name = "n0", .cores = false});
  for (Device& device : facts.devices) {
    std::erase_if(device.attributes,
                  [](const Attribute& a) { return a.name.id.starts_with("networkNode"); });
  }
  cluster.PutNode(facts);
  EXPECT_THAT(SummarizeTopology(cluster), ContainsRegex("\n- +1 +0 +0 +16 +16 +0 +0 +1\n"));
}

TEST(DrawDomainTest, OneDomainIsDrawnByItsNameOrByThatOfOneOfItsNodes) {
  ClusterState cluster;
  AddUltraServer(cluster, "us-0", false);
  AddUltraServer(cluster, "us-1", false);
  cluster.PutNode(NodeFactsOf({.name = "lone", .cores = false}));
  const auto domain = DrawDomain(cluster, {}, "us-1");
  ASSERT_TRUE(domain);
  EXPECT_THAT(*domain, HasSubstr("UltraServer us-1  trn2u.48xlarge  64 of 64 chips free"));
  EXPECT_THAT(*domain, Not(HasSubstr("us-0")));
  EXPECT_EQ(DrawDomain(cluster, {}, "us-1-n2"), domain);
  EXPECT_THAT(DrawDomain(cluster, {}, "lone").value_or(""), HasSubstr("Instance lone"));
  EXPECT_FALSE(DrawDomain(cluster, {}, "us-7"));
}

}  // namespace
}  // namespace tahoma::controller

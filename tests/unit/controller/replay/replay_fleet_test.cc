#include "controller/replay/replay_fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/model/cluster.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

TEST(ReplayFleetTest, TheNodesOfAFleetFormItsTori) {
  const auto fleet = ParseFleet("3-UltraServers+2-trn2.48xlarge+5-trn2.3xlarge");
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  EXPECT_EQ(fleet->Describe(), "3 UltraServers, 2 trn2.48xlarge, 5 trn2.3xlarge: 229 chips");
  ClusterState cluster;
  for (NodeFacts& node : NodesOf(*fleet)) cluster.PutNode(std::move(node));
  const ClusterState::Totals totals = cluster.Count();
  EXPECT_EQ(totals.nodes, 19U);
  EXPECT_EQ(totals.ultra_servers, 3U);
  EXPECT_EQ(totals.chips, 229U);
  EXPECT_EQ(totals.free, 229U);
}

TEST(ReplayFleetTest, AWrongFleetIsRefusedWithWhatWouldBeRight) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"",
            "\"\" must begin with a number from 1 to 100000, such as 2-UltraServers, "
            "8-trn2.48xlarge, or both joined by +"},
           {"UltraServers", "\"UltraServers\" must begin with a number"},
           {"0-UltraServers", "\"0-UltraServers\" must begin with a number"},
           {"-1-UltraServers", "must begin with a number"},
           {"2-", "\"\" is no hardware of a replay"},
           {"2", "\"\" is no hardware of a replay"},
           {"2-p5.48xlarge", "\"p5.48xlarge\" is no hardware of a replay: such as 2-UltraServers"},
           {"2-trn2u.48xlarge", "\"trn2u.48xlarge\" is no hardware of a replay"},
           {"2-UltraServers+", "\"\" must begin with a number"},
           {"30000-UltraServers", "more than 100000 nodes; take a smaller fleet"}}) {
    const auto fleet = ParseFleet(text);
    ASSERT_FALSE(fleet.ok()) << text;
    EXPECT_THAT(std::string(Message(fleet.status())), testing::HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace tahoma::controller

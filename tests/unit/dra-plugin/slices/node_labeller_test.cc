// The labels that the plugin keeps on its Node, against our own API server.

#include "dra-plugin/slices/node_labeller.h"

#include <gtest/gtest.h>

#include <string>

#include "controller/apiserver/http/in_process_transport.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "tests/support/api_fixture.h"

namespace tahoma::dra {
namespace {

wire::Inventory Member() {
  using enum hw::UltraServerMode;
  return {.instance_type = "trn2u.48xlarge",
          .ultra_server =
              wire::UltraServer{.id = "us-1",
                                .node_id = 3,
                                .election = wire::UltraServerElection{.modes = {kX4, kX2V, kX1},
                                                                      .server_id_2 = "af",
                                                                      .node_id_2 = 1,
                                                                      .server_id_4 = "b0",
                                                                      .node_id_4 = 3}},
          .network_layers = {"nn-1", "nn-2", "nn-3"},
          .capacity_block_id = "cr-1"};
}

const std::string kNodes = "/api/v1/nodes";

class NodeLabellerTest : public testing::ApiFixture {
 protected:
  NodeLabellerTest() {
    const Json node = {{"metadata", {{"name", "node-a"}, {"labels", {{"mine", "stays"}}}}}};
    EXPECT_EQ(Call("POST", kNodes, node).status, 201);
  }

  Json Metadata() { return Call("GET", kNodes + "/node-a").body.at("metadata"); }
  std::string Label(const std::string& name) { return Metadata().at("labels").value(name, ""); }

  controller::apiserver::InProcessTransport transport_{*server_, clock_, "dra-plugin"};
  NodeLabeller labeller_{transport_, "node-a"};
};

TEST_F(NodeLabellerTest, AMemberOfAnUltraServerHasTheLabelsOfAws) {
  ASSERT_TRUE(labeller_.Publish(Member()).ok());
  EXPECT_EQ(Label("node.kubernetes.io/instance-type"), "trn2u.48xlarge");
  EXPECT_EQ(Label("topology.k8s.aws/network-node-layer-3"), "nn-3");
  EXPECT_EQ(Label("topology.k8s.aws/capacity-block-id"), "cr-1");
  EXPECT_EQ(Label("neuron.amazonaws.com/ultraserver-mode"), "1_2_4");
  EXPECT_EQ(Label("neuron.amazonaws.com/ultraserver-server-id-4"), "b0");
  EXPECT_EQ(Label("neuron.amazonaws.com/ultraserver-node-id-2"), "1");
  EXPECT_EQ(Label("mine"), "stays");
}

TEST_F(NodeLabellerTest, WhatTheElectionTookAwayIsTakenAway) {
  ASSERT_TRUE(labeller_.Publish(Member()).ok());
  wire::Inventory alone = Member();
  alone.ultra_server->election = wire::UltraServerElection{.modes = {hw::UltraServerMode::kX1}};
  ASSERT_TRUE(labeller_.Publish(alone).ok());
  EXPECT_EQ(Label("neuron.amazonaws.com/ultraserver-mode"), "1");
  for (const char* gone : {"server-id-2", "node-id-2", "server-id-4", "node-id-4"}) {
    EXPECT_EQ(Label(std::string("neuron.amazonaws.com/ultraserver-") + gone), "") << gone;
  }
}

TEST_F(NodeLabellerTest, NothingIsWrittenWhenAllIsAsItShouldBe) {
  ASSERT_TRUE(labeller_.Publish(Member()).ok());
  const Json before = Metadata();
  ASSERT_TRUE(labeller_.Publish(Member()).ok());
  EXPECT_EQ(Metadata(), before);
}

TEST_F(NodeLabellerTest, WhatSomebodyElseWritesIsPutRight) {
  ASSERT_TRUE(labeller_.Publish(Member()).ok());
  const Json wrong = {{"metadata", {{"labels", {{"neuron.amazonaws.com/ultraserver-mode", "1"}}}}}};
  ASSERT_EQ(Patch(kNodes + "/node-a", "merge-patch+json", wrong).status, 200);
  ASSERT_TRUE(labeller_.Publish(Member()).ok());
  EXPECT_EQ(Label("neuron.amazonaws.com/ultraserver-mode"), "1_2_4");
}

TEST_F(NodeLabellerTest, ANodeThatIsNotThereIsNamed) {
  NodeLabeller nobody(transport_, "node-b");
  const absl::Status status = nobody.Publish(Member());
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_NE(Message(status).find("node-b"), std::string::npos);
}

}  // namespace
}  // namespace tahoma::dra

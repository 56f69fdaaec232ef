// Tests that a node's token reaches the node's own objects and those that its pods use, and nothing
// of a neighbour's.

#include "controller/access/node_rules.h"

#include <gtest/gtest.h>

#include <string>

#include "controller/access/access_table.h"
#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

// Pods are called after their node: "n1-pod"; likewise ResourceSlices, claims and secrets.
class NamesSayTheNode final : public NodeView {
 public:
  std::optional<std::string> NodeOfPod(std::string_view, std::string_view name) const override {
    if (name == "missing") return std::nullopt;
    return std::string(name.substr(0, 2));
  }
  std::optional<std::string> NodeOfSlice(std::string_view name) const override {
    return NodeOfPod("", name);
  }
  bool ClaimIsOn(std::string_view, std::string_view name, std::string_view node) const override {
    return name.starts_with(node);
  }
  bool IsUsedOn(std::string_view, std::string_view, std::string_view name,
                std::string_view node) const override {
    return name.starts_with(node);
  }
};

class NodeRulesTest : public ::testing::Test {
 protected:
  NodeRulesTest()
      : table_(*AccessTable::Make(
            {{.name = "system:node:n1", .token = Sha256("token-of-n1-12345"), .role = Role::kNode}},
            false)),
        node_(table_.Authenticate("token-of-n1-12345", std::nullopt)) {}
  bool May(const Attributes& attributes) const {
    return table_.Authorize(*node_, attributes, NamesSayTheNode()).allowed;
  }
  const AccessTable table_;
  const std::shared_ptr<const rest::Identity> node_;
};

TEST_F(NodeRulesTest, ANodeKeepsItselfItsLeaseAndItsSlices) {
  EXPECT_TRUE(May({.verb = "create", .resource = "nodes"}));
  EXPECT_TRUE(May({.verb = "patch", .resource = "nodes", .name = "n1"}));
  EXPECT_TRUE(May({.verb = "patch", .resource = "nodes", .subresource = "status", .name = "n1"}));
  const Attributes lease{.verb = "patch",
                         .group = "coordination.k8s.io",
                         .resource = "leases",
                         .name_space = "kube-node-lease",
                         .name = "n1"};
  EXPECT_TRUE(May(lease));
  const Attributes slices{.verb = "list",
                          .group = "resource.k8s.io",
                          .resource = "resourceslices",
                          .node_selector = "n1"};
  EXPECT_TRUE(May(slices));
  EXPECT_TRUE(May({.verb = "update",
                   .group = "resource.k8s.io",
                   .resource = "resourceslices",
                   .name = "n1-neuron-x"}));
}

TEST_F(NodeRulesTest, ANodeRunsItsOwnPodsAndReadsWhatTheyUse) {
  EXPECT_TRUE(May({.verb = "watch", .resource = "pods", .node_selector = "n1"}));
  EXPECT_TRUE(May({.verb = "get", .resource = "pods", .name_space = "a", .name = "n1-pod"}));
  EXPECT_TRUE(May({.verb = "get", .resource = "pods", .name_space = "a", .name = "missing"}))
      << "404 is what it must see";
  EXPECT_TRUE(May({.verb = "patch",
                   .resource = "pods",
                   .subresource = "status",
                   .name_space = "a",
                   .name = "n1-pod"}));
  EXPECT_TRUE(May({.verb = "delete", .resource = "pods", .name_space = "a", .name = "n1-pod"}));
  EXPECT_TRUE(May({.verb = "get", .resource = "secrets", .name_space = "a", .name = "n1-key"}));
  EXPECT_TRUE(May({.verb = "create", .resource = "events", .name_space = "a"}));
  EXPECT_TRUE(May({.verb = "get",
                   .group = "resource.k8s.io",
                   .resource = "resourceclaims",
                   .name_space = "a",
                   .name = "n1-claim"}));
}

TEST_F(NodeRulesTest, ANeighboursObjectsAreOutOfReach) {
  EXPECT_FALSE(May({.verb = "patch", .resource = "nodes", .name = "n2"}));
  EXPECT_FALSE(May({.verb = "patch", .resource = "nodes", .subresource = "status", .name = "n2"}));
  EXPECT_FALSE(May({.verb = "list", .resource = "nodes"}));
  EXPECT_FALSE(May({.verb = "delete", .resource = "nodes", .name = "n1"}));
  EXPECT_FALSE(May({.verb = "patch",
                    .group = "coordination.k8s.io",
                    .resource = "leases",
                    .name_space = "kube-node-lease",
                    .name = "n2"}));
  EXPECT_FALSE(May({.verb = "patch",
                    .group = "coordination.k8s.io",
                    .resource = "leases",
                    .name_space = "default",
                    .name = "n1"}));
  EXPECT_FALSE(May({.verb = "watch", .resource = "pods"}));
  EXPECT_FALSE(May({.verb = "list", .resource = "pods", .node_selector = "n2"}));
  EXPECT_FALSE(May({.verb = "delete", .resource = "pods", .name_space = "a", .name = "n2-pod"}));
  EXPECT_FALSE(May({.verb = "deletecollection", .resource = "pods", .node_selector = "n1"}));
  EXPECT_FALSE(May({.verb = "create", .resource = "pods", .name_space = "a"}));
  EXPECT_FALSE(May({.verb = "get", .resource = "secrets", .name_space = "a", .name = "n2-key"}));
  EXPECT_FALSE(May({.verb = "list", .resource = "secrets", .name_space = "a"}));
  EXPECT_FALSE(May({.verb = "delete",
                    .group = "resource.k8s.io",
                    .resource = "resourceslices",
                    .name = "n2-neuron-x"}));
  EXPECT_FALSE(May({.verb = "get",
                    .group = "resource.k8s.io",
                    .resource = "resourceclaims",
                    .name_space = "a",
                    .name = "n2-claim"}));
  EXPECT_FALSE(May({.verb = "create",
                    .resource = "pods",
                    .subresource = "binding",
                    .name_space = "a",
                    .name = "n1-pod"}));
}

TEST_F(NodeRulesTest, OfAClaimsStatusOnlyTheNodesOwnDevicesAreWritten) {
  const Attributes status{.verb = "patch",
                          .group = "resource.k8s.io",
                          .resource = "resourceclaims",
                          .subresource = "status",
                          .name_space = "a",
                          .name = "n1-claim"};
  EXPECT_TRUE(May(status));
  Attributes neighbours = status;
  neighbours.name = "n2-claim";
  EXPECT_FALSE(May(neighbours));
  const auto device = [](const char* pool) { return Json{{"pool", pool}, {"device", "d"}}; };
  const auto body = [](Json devices) {
    return Json{{"status", {{"devices", std::move(devices)}}}};
  };
  EXPECT_FALSE(WrongBodyForNode("n1", status, body(Json::array({device("n1")}))));
  EXPECT_FALSE(WrongBodyForNode("n1", status, body(Json::array())));
  EXPECT_TRUE(WrongBodyForNode("n1", status, body(Json::array({device("n1"), device("n2")}))));
  EXPECT_TRUE(WrongBodyForNode("n1", status, body(Json())));
  EXPECT_TRUE(WrongBodyForNode("n1", status, Json::array()));
  Json allocation = body(Json::array({device("n1")}));
  allocation["status"]["allocation"] = nullptr;
  EXPECT_TRUE(WrongBodyForNode("n1", status, allocation));
}

TEST_F(NodeRulesTest, AnObjectThatSaysAnotherNodeIsNotMade) {
  const auto named = [](const char* name) { return Json{{"metadata", {{"name", name}}}}; };
  const Attributes node{.verb = "create", .resource = "nodes"};
  EXPECT_FALSE(WrongBodyForNode("n1", node, named("n1")));
  EXPECT_TRUE(WrongBodyForNode("n1", node, named("n2")));
  EXPECT_TRUE(WrongBodyForNode("n1", node, Json::array()));
  const Attributes slice{
      .verb = "update", .group = "resource.k8s.io", .resource = "resourceslices", .name = "n1-x"};
  EXPECT_FALSE(WrongBodyForNode("n1", slice, {{"spec", {{"nodeName", "n1"}}}}));
  EXPECT_TRUE(WrongBodyForNode("n1", slice, {{"spec", {{"nodeName", "n2"}}}}));
  EXPECT_TRUE(WrongBodyForNode("n1", slice, {{"spec", {{"allNodes", true}}}}));
  EXPECT_TRUE(WrongBodyForNode("n1", slice, {{"spec", 1}}));
}

TEST_F(NodeRulesTest, ACertificateIsANodesOnlyWithTheGroupOfNodes) {
  const auto of = [&](std::vector<std::string> groups) {
    return *table_.Authenticate(
        std::nullopt,
        rest::ClientSubject{.common_name = "system:node:n1", .organizations = std::move(groups)});
  };
  const Attributes own{.verb = "patch", .resource = "nodes", .name = "n1"};
  EXPECT_TRUE(table_.Authorize(of({"system:nodes"}), own, NoObjects()).allowed);
  EXPECT_FALSE(table_.Authorize(of({}), own, NoObjects()).allowed);
}

}  // namespace
}  // namespace tahoma::controller

// Tests that a node's token reaches the node's own objects and those that its pods use, and nothing
// of a neighbour's.

#include "controller/access/node_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  EXPECT_TRUE(May(
      {.verb = "get", .resource = "persistentvolumeclaims", .name_space = "a", .name = "n1-data"}));
  EXPECT_TRUE(May({.verb = "get", .resource = "persistentvolumes", .name = "n1-volume"}));
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
  for (const auto& [name, may] : {std::pair("n1-builder", true), std::pair("n2-builder", false)}) {
    EXPECT_EQ(May({.verb = "create",
                   .resource = "serviceaccounts",
                   .subresource = "token",
                   .name_space = "a",
                   .name = name}),
              may);
  }
  EXPECT_FALSE(
      May({.verb = "create", .resource = "serviceaccounts", .name_space = "a", .name = "n1-b"}));
  EXPECT_FALSE(May({.verb = "list", .resource = "secrets", .name_space = "a"}));
  EXPECT_FALSE(May(
      {.verb = "get", .resource = "persistentvolumeclaims", .name_space = "a", .name = "n2-data"}));
  EXPECT_FALSE(May({.verb = "get", .resource = "persistentvolumes", .name = "n2-volume"}));
  EXPECT_FALSE(May({.verb = "list", .resource = "persistentvolumes"}));
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

// ---- Changes of objects ------------------------------------------------------------------------

// Whether n1 may make of `before` (null: nothing) what `after` is.
bool MayChange(const char* resource, const char* subresource, const Json& before,
               const Json& after) {
  const Attributes wanted{
      .verb = before.is_null() ? "create" : "update",
      .group = std::string_view(resource).starts_with("resource") ? "resource.k8s.io" : "",
      .resource = resource,
      .subresource = subresource};
  return !WrongChangeForNode("n1", wanted, before, after);
}

// The object with the value at /a/b/c.
Json With(const Json& object, const char* path, Json value) {
  Json changed = object;
  changed[Json::json_pointer(path)] = std::move(value);
  return changed;
}

TEST_F(NodeRulesTest, ANodeWritesOnlyItsOwnDevicesInTheStatusOfAClaim) {
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
  const auto devices = [](std::vector<const char*> pools) {
    Json list = Json::array();
    for (const char* pool : pools) list.push_back({{"pool", pool}, {"device", "d"}});
    return list;
  };
  const Json claim = {{"metadata", {{"name", "c"}}},
                      {"status", {{"allocation", {{"devices", 1}}}, {"devices", devices({"n2"})}}}};
  const auto may = [&](const Json& after) {
    return MayChange("resourceclaims", "status", claim, after);
  };
  EXPECT_TRUE(may(With(claim, "/status/devices", devices({"n1", "n2"}))));
  EXPECT_FALSE(may(With(claim, "/status/devices", devices({"n1"})))) << "n2's is gone";
  EXPECT_FALSE(may(With(claim, "/status/devices", devices({"n1", "n2", "n3"}))));
  EXPECT_FALSE(may(With(claim, "/status/allocation", nullptr)));
  EXPECT_FALSE(may(With(claim, "/status/reservedFor", Json::array({1}))));
  EXPECT_FALSE(may(With(claim, "/metadata/finalizers", Json::array({"a/b"}))));
}

TEST_F(NodeRulesTest, ANodeMakesNoObjectThatNamesAnotherNode) {
  const auto named = [](const char* name) { return Json{{"metadata", {{"name", name}}}}; };
  for (const char* resource : {"nodes", "leases"}) {
    EXPECT_TRUE(MayChange(resource, "", nullptr, named("n1")));
    EXPECT_FALSE(MayChange(resource, "", nullptr, named("n2")));
    EXPECT_FALSE(MayChange(resource, "", nullptr, Json::array()));
  }
}

TEST_F(NodeRulesTest, ASliceIsOfTheNodesOwnPoolAndOnTheNodeAlone) {
  const Json own = {{"metadata", {{"name", "n1-x"}}},
                    {"spec", {{"nodeName", "n1"}, {"pool", {{"name", "n1"}, {"generation", 1}}}}}};
  const std::vector<std::pair<const char*, Json>> wrong = {{"/spec/nodeName", "n2"},
                                                           {"/spec/pool/name", "n2"},
                                                           {"/spec/pool/name", "n1-more"},
                                                           {"/spec/pool", 1},
                                                           {"/spec/allNodes", true},
                                                           {"/spec/perDeviceNodeSelection", true},
                                                           {"/spec/nodeSelector", Json::object()},
                                                           {"/spec", 1}};
  for (const Json& before : {Json(nullptr), own}) {
    EXPECT_TRUE(MayChange("resourceslices", "", before, own));
    EXPECT_TRUE(MayChange("resourceslices", "", before, With(own, "/spec/pool/generation", 7)));
    for (const auto& [path, value] : wrong) {
      EXPECT_FALSE(MayChange("resourceslices", "", before, With(own, path, value))) << path;
    }
  }
}

TEST_F(NodeRulesTest, ANodeChangesThePartsOfItsNodeThatAKubeletChanges) {
  const Json node = {{"metadata", {{"name", "n1"}, {"labels", {{"pool", "a"}}}}},
                     {"spec", {{"providerID", "x"}}}};
  const auto label = [&](const char* key) {
    Json changed = node;
    changed["metadata"]["labels"][key] = "v";
    return changed;
  };
  const auto annotation = [&](const char* key) {
    Json changed = node;
    changed["metadata"]["annotations"][key] = "v";
    return changed;
  };
  for (const char* subresource : {"", "status"}) {
    const auto may = [&](const Json& after) {
      return MayChange("nodes", subresource, node, after) &&
             MayChange("nodes", subresource, after, node);
    };
    EXPECT_TRUE(may(With(node, "/status", {{"phase", "Running"}})));
    for (const char* key : {"team", "example.com/team", "kubernetes.io/hostname",
                            "node.kubernetes.io/instance-type", "kubelet.kubernetes.io/x",
                            "topology.k8s.aws/network-node-layer-1", "notkubernetes.io/x"}) {
      EXPECT_TRUE(may(label(key))) << key;
    }
    for (const char* key :
         {"node-restriction.kubernetes.io/trusted", "a.node-restriction.kubernetes.io/b",
          "node-role.kubernetes.io/control-plane", "kubernetes.io/other", "k8s.io/other",
          "x.k8s.io/y", "tahoma.dev/pool", "a.tahoma.dev/b"}) {
      EXPECT_FALSE(may(label(key))) << key;
      EXPECT_FALSE(MayChange("nodes", "", nullptr, label(key))) << key;
    }
    EXPECT_TRUE(may(annotation("volumes.kubernetes.io/controller-managed-attach-detach")));
    EXPECT_FALSE(may(annotation("tahoma.dev/cordoned-chips")));
    EXPECT_FALSE(may(With(node, "/metadata/finalizers", Json::array({"a/b"}))));
    EXPECT_FALSE(may(With(node, "/metadata/ownerReferences", Json::array({{{"uid", "1"}}}))));
    EXPECT_FALSE(may(With(node, "/spec/unschedulable", true)));
    EXPECT_FALSE(may(With(node, "/spec/taints", Json::array({{{"key", "k"}}}))));
  }
}

TEST_F(NodeRulesTest, ANodeRegistersWithTaintsAndWithoutAnOwner) {
  const Json node = {{"metadata", {{"name", "n1"}}}};
  const auto may = [&](const char* path, Json value) {
    return MayChange("nodes", "", nullptr, With(node, path, std::move(value)));
  };
  EXPECT_TRUE(may("/spec/taints", Json::array({{{"key", "k"}}})));
  EXPECT_FALSE(may("/spec/configSource", Json::object()));
  EXPECT_FALSE(may("/metadata/ownerReferences", Json::array({{{"uid", "1"}}})));
  EXPECT_FALSE(may("/metadata/finalizers", Json::array({"a/b"})));
}

TEST_F(NodeRulesTest, ThroughAPodsStatusNothingButTheStatusIsWritten) {
  const Json pod = {{"metadata", {{"name", "p"}, {"labels", {{"tahoma.dev/gang", "train"}}}}},
                    {"status", {{"resourceClaimStatuses", Json::array({{{"name", "a"}}})}}}};
  const auto may = [&](const char* path, Json value) {
    return MayChange("pods", "status", pod, With(pod, path, std::move(value)));
  };
  EXPECT_TRUE(may("/status/phase", "Running"));
  EXPECT_TRUE(may("/metadata/resourceVersion", "7"));
  EXPECT_FALSE(may("/metadata/labels", {{"tahoma.dev/gang", "other"}}));
  EXPECT_FALSE(may("/metadata/annotations", {{"tahoma.dev/gang-uid", "1"}}));
  EXPECT_FALSE(may("/metadata/finalizers", Json::array({"a/b"})));
  EXPECT_FALSE(may("/metadata/ownerReferences", Json::array({{{"uid", "1"}}})));
  EXPECT_FALSE(may("/status/resourceClaimStatuses", Json::array()));
  EXPECT_FALSE(may("/status/resourceClaimStatuses", nullptr));
  EXPECT_FALSE(may("/status/extendedResourceClaimStatus", {{"resourceClaimName", "c"}}));
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

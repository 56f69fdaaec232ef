#include "controller/access/node_rules.h"

#include "lib/base/json.h"
#include "lib/kube/object.h"

namespace tahoma::controller {
namespace {

constexpr std::string_view kLeaseNamespace = "kube-node-lease";

class Empty final : public NodeView {
 public:
  std::optional<std::string> NodeOfPod(std::string_view, std::string_view) const override {
    return std::nullopt;
  }
  std::optional<std::string> NodeOfSlice(std::string_view) const override { return std::nullopt; }
  bool ClaimIsOn(std::string_view, std::string_view, std::string_view) const override {
    return false;
  }
  bool IsUsedOn(std::string_view, std::string_view, std::string_view,
                std::string_view) const override {
    return false;
  }
};

std::optional<std::string_view> Unless(bool right, std::string_view why) {
  return right ? std::nullopt : std::optional(why);
}

// Whether the body applies nothing but entries of `status.devices` for the node's own pool.
bool IsOwnDevicesStatus(std::string_view node, const Json& body) {
  const Json* status = FindMember(body, "status");
  const Json* devices = status == nullptr ? nullptr : FindMember(*status, "devices");
  if (devices == nullptr || !devices->is_array() || status->size() != 1) return false;
  return std::all_of(devices->begin(), devices->end(),
                     [&](const Json& device) { return kube::StringAt(device, {"pool"}) == node; });
}

// A collection of what is on the node: only by a field selector that says so.
bool IsCollection(const Attributes& attributes) {
  return attributes.verb == "list" || attributes.verb == "watch" ||
         attributes.verb == "deletecollection";
}

std::optional<std::string_view> WrongPod(std::string_view node, const Attributes& wanted,
                                         const NodeView& view) {
  if (IsCollection(wanted)) {
    return Unless(wanted.node_selector == node,
                  "a node lists only its own pods (fieldSelector spec.nodeName)");
  }
  const auto its_node = view.NodeOfPod(wanted.name_space, wanted.name);
  return Unless(!its_node || *its_node == node, "the pod is not bound to this node");
}

std::optional<std::string_view> WrongSlice(std::string_view node, const Attributes& wanted,
                                           const NodeView& view) {
  if (IsCollection(wanted)) {
    return Unless(wanted.node_selector == node,
                  "a node lists only its own ResourceSlices (fieldSelector spec.nodeName)");
  }
  if (wanted.verb == "create") return std::nullopt;  // its body says whose it is
  const auto its_node = view.NodeOfSlice(wanted.name);
  return Unless(!its_node || *its_node == node, "the ResourceSlice is not of this node");
}

}  // namespace

const NodeView& NoObjects() {
  static const Empty empty;
  return empty;
}

std::optional<std::string_view> WrongForNode(std::string_view node, const Attributes& wanted,
                                             const NodeView& view) {
  if (wanted.resource == "pods") return WrongPod(node, wanted, view);
  if (wanted.resource == "resourceslices") return WrongSlice(node, wanted, view);
  if (wanted.resource == "nodes" && wanted.verb != "create") {
    return Unless(wanted.name == node, "a node reads and changes only itself");
  }
  if (wanted.resource == "leases") {
    return Unless(
        wanted.name_space == kLeaseNamespace && (wanted.verb == "create" || wanted.name == node),
        "a node has only the lease of its name in kube-node-lease");
  }
  if (wanted.resource == "resourceclaims") {
    return Unless(view.ClaimIsOn(wanted.name_space, wanted.name, node),
                  "no pod on this node uses the claim");
  }
  if (wanted.resource == "secrets" || wanted.resource == "configmaps") {
    return Unless(view.IsUsedOn(wanted.resource, wanted.name_space, wanted.name, node),
                  "no pod on this node uses it");
  }
  return std::nullopt;
}

std::optional<std::string_view> WrongBodyForNode(std::string_view node, const Attributes& wanted,
                                                 const Json& body) {
  if (wanted.resource == "nodes" || wanted.resource == "leases") {
    return Unless(kube::NameOf(body) == node || wanted.verb == "patch",
                  "a node makes only objects of its own name");
  }
  if (wanted.resource == "resourceclaims") {
    return Unless(IsOwnDevicesStatus(node, body),
                  "a node writes only the status of devices of its own pool");
  }
  if (wanted.resource == "resourceslices") {
    return Unless(kube::StringAt(body, {"spec", "nodeName"}) == node,
                  "the ResourceSlice's spec.nodeName is not this node");
  }
  return std::nullopt;
}

}  // namespace tahoma::controller

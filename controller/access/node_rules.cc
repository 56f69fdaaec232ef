#include "controller/access/node_rules.h"

#include <algorithm>
#include <array>
#include <initializer_list>

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

// ---- Changes of objects ------------------------------------------------------------------------

// Labels of Kubernetes' own domains that a kubelet sets; source: k8s.io/kubelet
// pkg/apis/well_known_labels.go.
constexpr std::array<std::string_view, 10> kKubeletLabels = {
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type"};

// Returns whether a label or annotation is of the domain "tahoma.dev", or of a domain below.
bool IsOf(std::string_view domain, std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view its = key.substr(0, slash);
  return its == domain || (its.ends_with(domain) && its[its.size() - domain.size() - 1] == '.');
}

bool IsNodesLabel(std::string_view key) {
  if (IsOf("tahoma.dev", key)) return false;
  if (!IsOf("kubernetes.io", key) && !IsOf("k8s.io", key)) return true;
  return IsOf("node.kubernetes.io", key) || IsOf("kubelet.kubernetes.io", key) ||
         std::ranges::find(kKubeletLabels, key) != kKubeletLabels.end();
}

// Null where there is none.
const Json& At(const Json& object, std::initializer_list<std::string_view> path) {
  static const Json none;
  const Json* const found = kube::ValueAt(object, path);
  return found == nullptr ? none : *found;
}

bool IsSameAt(std::initializer_list<std::string_view> path, const Json& before, const Json& after) {
  return At(before, path) == At(after, path);
}

// Returns whether `is_free` holds for every key whose value differs.
bool OnlyDiffersIn(const Json& before, const Json& after, bool (*is_free)(std::string_view key)) {
  const auto may = [&](const Json& from, const Json& to) {
    if (!from.is_object()) return true;
    const auto& members = MembersOf(from);
    return std::all_of(members.begin(), members.end(), [&](const auto& member) {
      const Json* const there = FindMember(to, member.first);
      return (there != nullptr && *there == member.second) || is_free(member.first);
    });
  };
  return may(before, after) && may(after, before);
}

// Labels, annotations, finalizers and owners: other parts of the cluster act on these.
bool IsSameMetadata(const Json& before, const Json& after) {
  return IsSameAt({"metadata", "labels"}, before, after) &&
         IsSameAt({"metadata", "annotations"}, before, after) &&
         IsSameAt({"metadata", "finalizers"}, before, after) &&
         IsSameAt({"metadata", "ownerReferences"}, before, after);
}

std::optional<std::string_view> WrongNodeChange(const Json& before, const Json& after) {
  if (!IsSameAt({"metadata", "ownerReferences"}, before, after)) {
    return "a node gives itself no owner, whose end would delete it";
  }
  if (!IsSameAt({"metadata", "finalizers"}, before, after)) {
    return "a node does not change its finalizers";
  }
  if (!OnlyDiffersIn(At(before, {"metadata", "labels"}), At(after, {"metadata", "labels"}),
                     IsNodesLabel)) {
    return "of the labels of kubernetes.io, k8s.io and tahoma.dev a node changes only those that a "
           "kubelet sets";
  }
  if (!OnlyDiffersIn(At(before, {"metadata", "annotations"}),
                     At(after, {"metadata", "annotations"}),
                     [](std::string_view key) { return !IsOf("tahoma.dev", key); })) {
    return "a node does not change its annotations of tahoma.dev: who cordons its chips does";
  }
  // A kubelet may register with taints, and unschedulable.
  if (before.is_null()) {
    return Unless(At(after, {"spec", "configSource"}).is_null(),
                  "a node sets no spec.configSource");
  }
  return Unless(IsSameAt({"spec"}, before, after),
                "a node does not change its spec: taints and unschedulable are its operators'");
}

std::optional<std::string_view> WrongPodChange(const Json& before, const Json& after) {
  if (!IsSameMetadata(before, after)) {
    return "through a pod's status a node writes no labels, annotations, finalizers or owners";
  }
  return Unless(IsSameAt({"status", "resourceClaimStatuses"}, before, after) &&
                    IsSameAt({"status", "extendedResourceClaimStatus"}, before, after),
                "a node does not choose the claims of a pod");
}

// A slice with a nodeName shows devices of that node. Its pool has the node's name; otherwise
// devices of two nodes could have the same identity.
std::optional<std::string_view> WrongSliceChange(std::string_view node, const Json& after) {
  if (kube::StringAt(after, {"spec", "nodeName"}) != node) {
    return "the ResourceSlice's spec.nodeName is not this node";
  }
  return Unless(kube::StringAt(after, {"spec", "pool", "name"}) == node &&
                    At(after, {"spec", "nodeSelector"}).is_null() &&
                    !kube::BoolAt(after, {"spec", "allNodes"}) &&
                    !kube::BoolAt(after, {"spec", "perDeviceNodeSelection"}),
                "the pool of a node's ResourceSlices, spec.pool.name, has the node's name, and "
                "its devices are on that node alone");
}

// Returns the devices of other pools in a claim's status.
Json DevicesElsewhere(std::string_view node, const Json& claim) {
  Json others = Json::array();
  for (const Json& device : kube::ListAt(claim, {"status", "devices"})) {
    if (kube::StringAt(device, {"pool"}) != node) others.push_back(device);
  }
  return others;
}

std::optional<std::string_view> WrongClaimChange(std::string_view node, const Json& before,
                                                 const Json& after) {
  return Unless(IsSameMetadata(before, after) &&
                    OnlyDiffersIn(At(before, {"status"}), At(after, {"status"}),
                                  [](std::string_view key) { return key == "devices"; }) &&
                    DevicesElsewhere(node, before) == DevicesElsewhere(node, after),
                "a node writes only the status of devices of its own pool");
}

// ---- Requests ----------------------------------------------------------------------------------

// Returns whether the request is for a collection, which needs a field selector for the node.
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
  if (wanted.verb == "create") return std::nullopt;  // the body's check compares the node
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
  if (wanted.resource == "secrets" || wanted.resource == "configmaps" ||
      wanted.resource == "persistentvolumeclaims" || wanted.resource == "persistentvolumes" ||
      wanted.resource == "serviceaccounts") {
    return Unless(view.IsUsedOn(wanted.resource, wanted.name_space, wanted.name, node),
                  "no pod on this node uses it");
  }
  return std::nullopt;
}

std::optional<std::string_view> WrongChangeForNode(std::string_view node, const Attributes& wanted,
                                                   const Json& before, const Json& after) {
  if ((wanted.resource == "nodes" || wanted.resource == "leases") && kube::NameOf(after) != node) {
    return "a node makes only objects of its own name";
  }
  if (wanted.resource == "nodes") return WrongNodeChange(before, after);
  if (wanted.resource == "pods") return WrongPodChange(before, after);
  if (wanted.resource == "resourceslices") return WrongSliceChange(node, after);
  if (wanted.resource == "resourceclaims") return WrongClaimChange(node, before, after);
  return std::nullopt;
}

}  // namespace tahoma::controller

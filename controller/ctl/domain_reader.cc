#include "controller/ctl/domain_reader.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "controller/core/facts/read_facts.h"
#include "controller/ctl/fleet_reader.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/kube/client.h"
#include "lib/kube/name.h"
#include "lib/kube/object.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {
namespace {

// The labels by which nodes name their UltraServer
// (docs/reference/aws-dra-driver.md#ultraserver-labels).
constexpr std::array<const char*, 2> kUltraServerLabels = {
    "topology.k8s.aws/ultraserver-id", "neuron.amazonaws.com/ultraserver-server-id-4"};

using NodesByName = std::map<std::string, Json>;

class DomainReader {
 public:
  explicit DomainReader(kube::Transport& transport) : transport_(transport) {}

  // kUnimplemented when the domain cannot be told from the rest by selectors.
  absl::StatusOr<Fleet> Read(const std::string& name) {
    TAHOMA_RETURN_IF_ERROR(AddUltraServer(name));
    if (names_.empty()) {
      TAHOMA_RETURN_IF_ERROR(AddNodeAndItsUltraServer(name));
    }
    if (names_.empty()) return Unimplemented("no node has a label or the name {}", name);
    for (const std::string& node : names_) {
      TAHOMA_RETURN_IF_ERROR(ReadOnNode(kube::kPods, node, [&](const Json& pod) { AddPod(pod); }));
    }
    TAHOMA_RETURN_IF_ERROR(AddClaims());
    return std::move(fleet_).Finish();
  }

 private:
  // Adds the nodes with a label that names the UltraServer, and their slices.
  absl::Status AddUltraServer(const std::string& id) {
    if (kube::WrongLabelValue(id)) return absl::OkStatus();
    NodesByName nodes;
    for (const char* label : kUltraServerLabels) {
      TAHOMA_RETURN_IF_ERROR(
          ReadAll(transport_, kube::kNodes,
                  [&](const Json& node) { nodes.emplace(kube::NameOf(node), node); },
                  {.label_selector = fmt::format("{}={}", label, id)}));
    }
    for (const auto& [name, node] : nodes) {
      TAHOMA_RETURN_IF_ERROR(AddNode(name, node));
    }
    return absl::OkStatus();
  }

  absl::Status AddNodeAndItsUltraServer(const std::string& name) {
    kube::InterruptibleSleeper sleeper;
    kube::Client client(transport_, sleeper, Rng(0), {.attempts = 1});
    const absl::StatusOr<Json> node = client.Get(kube::kNodes, {"", name});
    if (absl::IsNotFound(node.status())) return absl::OkStatus();
    if (!node.ok()) return Annotate(node.status(), kube::kNodes.ObjectPath({"", name}));
    TAHOMA_RETURN_IF_ERROR(AddNode(name, *node));
    const auto id = fleet_.cluster().FindNode(name);
    if (!id) return absl::OkStatus();
    const std::string ultra = fleet_.cluster().node(*id).node->ultraserver_id;
    if (ultra.empty()) return absl::OkStatus();
    const bool labelled =
        std::any_of(kUltraServerLabels.begin(), kUltraServerLabels.end(),
                    [&](const char* label) { return kube::LabelOf(*node, label) == ultra; });
    if (!labelled) return Unimplemented("node {} has no label of UltraServer {}", name, ultra);
    return AddUltraServer(ultra);
  }

  absl::Status AddNode(const std::string& name, const Json& node) {
    if (!names_.insert(name).second) return absl::OkStatus();
    fleet_.AddNode(node);
    return ReadOnNode(kube::kResourceSlices, name,
                      [&](const Json& slice) { fleet_.AddSlice(slice); });
  }

  void AddPod(const Json& pod) {
    pods_.emplace(kube::UidOf(pod));
    fleet_.AddPod(pod);
  }

  absl::Status AddClaims() {
    std::vector<Json> claims;
    TAHOMA_RETURN_IF_ERROR(ReadAll(transport_, kube::kResourceClaims, [&](const Json& claim) {
      if (IsHere(claim)) claims.push_back(claim);
    }));
    for (const Json& claim : claims) {
      TAHOMA_RETURN_IF_ERROR(AddPodsNotBound(claim));
    }
    for (const Json& claim : claims) fleet_.AddClaim(claim);
    return absl::OkStatus();
  }

  bool IsHere(const Json& object) const {
    const auto claim = ParseClaimState(object);
    if (!claim.ok() || (*claim)->allocation == nullptr) return false;
    const auto held = HeldDevices(*(*claim)->allocation);
    return std::any_of(held.begin(), held.end(),
                       [&](const auto& device) { return names_.contains(device.node); });
  }

  // A claim is allocated before its pod is bound: such a pod is on no node yet.
  absl::Status AddPodsNotBound(const Json& object) {
    const auto claim = ParseClaimState(object);
    if (!claim.ok()) return absl::OkStatus();
    kube::InterruptibleSleeper sleeper;
    kube::Client client(transport_, sleeper, Rng(0), {.attempts = 1});
    for (const Reservation& held : (*claim)->reserved_for) {
      if (held.resource != "pods" || pods_.contains(held.uid)) continue;
      const kube::ObjectKey key{(*claim)->key.ns, held.name};
      const absl::StatusOr<Json> pod = client.Get(kube::kPods, key);
      if (absl::IsNotFound(pod.status())) continue;
      if (!pod.ok()) return Annotate(pod.status(), kube::kPods.ObjectPath(key));
      if (kube::UidOf(*pod) == held.uid) AddPod(*pod);
    }
    return absl::OkStatus();
  }

  absl::Status ReadOnNode(const kube::Resource& resource, const std::string& node,
                          const std::function<void(const Json& object)>& each) {
    return ReadAll(transport_, resource, each, {.field_selector = "spec.nodeName=" + node});
  }

  kube::Transport& transport_;
  FleetBuilder fleet_;
  std::set<std::string> names_;              // of the domain's nodes
  std::set<std::string, std::less<>> pods_;  // uids of those that are known
};

}  // namespace

absl::StatusOr<Fleet> ReadDomain(kube::Transport& transport, const std::string& name) {
  absl::StatusOr<Fleet> domain = DomainReader(transport).Read(name);
  return absl::IsUnimplemented(domain.status()) ? ReadFleet(transport) : std::move(domain);
}

}  // namespace tahoma::controller

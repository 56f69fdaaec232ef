#include "sim-node/fleet/virtual_nodes.h"

#include <optional>
#include <utility>

#include "dra-plugin/slices/slice_publisher.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/hw/ec2_type.h"
#include "lib/kube/lease.h"
#include "lib/kube/object.h"
#include "lib/kube/objects/taint.h"
#include "lib/kube/quantity.h"
#include "lib/kube/resource.h"
#include "sim-node/podrunner/node_object.h"

namespace tahoma::sim {
namespace {

using json = Json;

constexpr const char* kLeaseNamespace = "kube-node-lease";
constexpr const char* kReadyMessage = "a virtual node: nobody runs pods here";

NodeFacts FactsOf(const VirtualNode& node, WallTime ready_since) {
  NodeFacts facts = {.name = node.name,
                     .instance_type = std::string(node.type->name),
                     .vcpus = node.type->vcpus,
                     .memory_bytes = node.type->memory_bytes,
                     .efa_interfaces = hw::EfaInterfaces(node.type->name),
                     .network_layers = node.network_layers,
                     .ready_since = ready_since};
  if (node.ultra_server) {
    facts.ultra_server_id = node.ultra_server->id;
    facts.ultra_server_node = node.ultra_server->node_id;
  }
  return facts;
}

// Returns the labels to set; null for labels to remove.
json LabelsFor(const FleetPlan& plan, const VirtualNode& node) {
  json labels = LabelPatch(FactsOf(node, {}));
  labels[std::string(kFleetLabel)] = plan.name;
  labels[std::string(kVirtualNodeKey)] = "true";
  return labels;
}

json StatusFor(const VirtualNode& node, WallTime ready_since, WallTime now) {
  json status = MakeNodeStatus(FactsOf(node, ready_since), now);
  status.erase("daemonEndpoints");  // there is nobody to ask for logs
  for (json& condition : status["conditions"]) {
    if (condition["type"] == "Ready") condition["message"] = kReadyMessage;
  }
  return status;
}

std::optional<kube::Taint> TaintOf(const FleetPlan& plan) {
  if (!plan.taint) return std::nullopt;
  return kube::Taint{.key = std::string(kVirtualNodeKey), .value = "true", .effect = *plan.taint};
}

// Returns the node's taints with ours as wanted; other writers' taints stay.
json TaintsFor(const FleetPlan& plan, const json& there) {
  json taints = json::array();
  bool found = false;
  const std::optional<kube::Taint> ours = TaintOf(plan);
  for (const json& taint : kube::ListAt(there, {"spec", "taints"})) {
    if (kube::StringAt(taint, {"key"}) != kVirtualNodeKey) {
      taints.push_back(taint);
    } else if (ours && !found && kube::StringAt(taint, {"value"}) == ours->value &&
               kube::StringAt(taint, {"effect"}) ==
                   kube::StringAt(kube::RenderTaint(*ours), {"effect"})) {
      taints.push_back(taint);  // with its timeAdded
      found = true;
    }
  }
  if (ours && !found) taints.push_back(kube::RenderTaint(*ours));
  return taints;
}

// The time since which the server has the node as Ready; nothing when not Ready.
std::optional<WallTime> ReadySince(const json& there) {
  for (const json& condition : kube::ListAt(there, {"status", "conditions"})) {
    if (kube::StringAt(condition, {"type"}) != "Ready") continue;
    if (kube::StringAt(condition, {"status"}) != "True") continue;
    return ParseTime(kube::StringAt(condition, {"lastTransitionTime"})).value_or(WallTime{});
  }
  return std::nullopt;
}

// Servers write quantities in a form of their own: 2147483648Ki is read as 2Ti.
bool HasResources(const json& there, const json& status) {
  for (const char* part : {"capacity", "allocatable"}) {
    for (const auto& [name, amount] : MembersOf(status.at(part))) {
      const auto has = kube::Quantity::Parse(kube::StringAt(there, {"status", part, name}));
      if (!has.ok() || *has != *kube::Quantity::Parse(amount.get_ref<const std::string&>())) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

json VirtualNodeObject(const FleetPlan& plan, const VirtualNode& node, WallTime now) {
  json object = MakeNode(FactsOf(node, now), now);
  const json wanted = LabelsFor(plan, node);
  json labels = json::object();
  for (const auto& [name, value] : MembersOf(wanted)) {
    if (!value.is_null()) labels[name] = value;
  }
  object["metadata"]["labels"] = std::move(labels);
  if (const auto taint = TaintOf(plan)) {
    object["spec"]["taints"] = json::array({kube::RenderTaint(*taint)});
  }
  object["status"] = StatusFor(node, now, now);
  return object;
}

json VirtualNodeRepair(const FleetPlan& plan, const VirtualNode& node, const json& there) {
  const json wanted = LabelsFor(plan, node);
  json labels = json::object();
  const json* has = kube::ValueAt(there, {"metadata", "labels"});
  for (const auto& [name, value] : MembersOf(wanted)) {
    const json* label = has == nullptr ? nullptr : FindMember(*has, name);
    if (label == nullptr ? !value.is_null() : *label != value) labels[name] = value;
  }
  const json taints = TaintsFor(plan, there);
  const bool tainted = taints == kube::ListAt(there, {"spec", "taints"}) ||
                       (taints.empty() && kube::ListAt(there, {"spec", "taints"}).empty());
  if (labels.empty() && tainted) return nullptr;
  json patch = {{"metadata", {{"resourceVersion", kube::ResourceVersionOf(there)}}}};
  if (!labels.empty()) patch["metadata"]["labels"] = std::move(labels);
  if (!tainted) patch["spec"]["taints"] = taints;
  return patch;
}

json VirtualNodeStatusRepair(const VirtualNode& node, const json& there, WallTime now) {
  const std::optional<WallTime> since = ReadySince(there);
  json status = StatusFor(node, since.value_or(now), now);
  if (since && HasResources(there, status)) return nullptr;
  return {{"status", std::move(status)}};
}

VirtualNodes::VirtualNodes(FleetPlan plan, kube::Transport& transport, const Clock& clock)
    : plan_(std::move(plan)),
      transport_(transport),
      clock_(clock),
      api_(transport, no_sleep_, Rng(0), {.attempts = 1}) {}

absl::StatusOr<VirtualNodes::NodeState> VirtualNodes::CreateNode(const VirtualNode& node) {
  const auto made = api_.Create(kube::kNodes, "", VirtualNodeObject(plan_, node, clock_.WallNow()));
  if (!made.ok()) return made.status();
  return NodeState{.uid = std::string(kube::UidOf(*made)), .is_new = true};
}

absl::Status VirtualNodes::Repair(const VirtualNode& node, const json& there) {
  const kube::ObjectKey key = {"", node.name};
  const json patch = VirtualNodeRepair(plan_, node, there);
  if (!patch.is_null()) {
    TAHOMA_RETURN_IF_ERROR(api_.Patch(kube::kNodes, key, kube::PatchType::kMerge, patch).status());
  }
  const json status = VirtualNodeStatusRepair(node, there, clock_.WallNow());
  if (status.is_null()) return absl::OkStatus();
  return api_
      .Patch(kube::kNodes, key, kube::PatchType::kStrategicMerge, status, {.subresource = "status"})
      .status();
}

absl::StatusOr<VirtualNodes::NodeState> VirtualNodes::EnsureNode(const VirtualNode& node,
                                                                 Known known) {
  if (known == Known::kNothing) {
    absl::StatusOr<NodeState> made = CreateNode(node);
    if (!absl::IsAlreadyExists(made.status())) return made;
  }
  const absl::StatusOr<json> there = api_.Get(kube::kNodes, {"", node.name});
  if (absl::IsNotFound(there.status())) return CreateNode(node);
  TAHOMA_RETURN_IF_ERROR(there.status());
  if (kube::LabelOf(*there, kVirtualNodeKey).value_or("") != "true") {
    return FailedPrecondition(
        "there is a node of that name without the label {}=true, perhaps a real one; it is left as "
        "it is: name the fleet otherwise, or delete the node",
        kVirtualNodeKey);
  }
  TAHOMA_RETURN_IF_ERROR(Repair(node, *there));
  return NodeState{
      .uid = std::string(kube::UidOf(*there)),
      .broken_chips = std::string(kube::AnnotationOf(*there, kBrokenChips).value_or(""))};
}

absl::Status VirtualNodes::Renew(const std::string& name) {
  return api_
      .Patch(kube::kLeases, {kLeaseNamespace, name}, kube::PatchType::kMerge,
             kube::NodeLeaseRenewal(name, clock_.WallNow()))
      .status();
}

absl::Status VirtualNodes::EnsureLease(const VirtualNode& node, const NodeState& state) {
  if (!state.is_new) {
    const absl::Status renewed = Renew(node.name);
    if (!absl::IsNotFound(renewed)) return renewed;
  }
  const absl::Status made = api_.Create(kube::kLeases, kLeaseNamespace,
                                        kube::MakeNodeLease(node.name, state.uid, clock_.WallNow()))
                                .status();
  return absl::IsAlreadyExists(made) ? Renew(node.name) : made;
}

absl::StatusOr<std::size_t> VirtualNodes::EnsureSlices(const VirtualNode& node,
                                                       const NodeState& state) {
  using Publisher = dra::SlicePublisher;
  const absl::StatusOr<ChipFaults> faults = ParseChipFaults(state.broken_chips, *node.type);
  if (!faults.ok()) {
    return Annotate(faults.status(), fmt::format("annotation {}", kBrokenChips));
  }
  dra::SlicePublisherOptions options = {.fixed_names = true, .log_writes = false};
  {
    const MutexLock lock(mutex_);
    options.server = server_;
  }
  Publisher publisher(transport_, node.name, std::move(options));
  const dra::DevicePool pool = PoolOf(plan_, node, *faults);
  const absl::Status published = publisher.PublishFor(
      state.uid, pool, state.is_new ? Publisher::Known::kNone : Publisher::Known::kNothing);
  {
    const MutexLock lock(mutex_);
    if (std::optional<dra::ServerSupport> found = publisher.server()) {
      if (server_) found->dropped_fields.merge(server_->dropped_fields);
      server_ = std::move(found);
    }
  }
  TAHOMA_RETURN_IF_ERROR(published);
  return publisher.slices();
}

absl::StatusOr<std::size_t> VirtualNodes::Ensure(std::uint32_t index, Known known) {
  const VirtualNode node = NodeAt(plan_, index);
  absl::StatusOr<NodeState> state = EnsureNode(node, known);
  if (!state.ok()) return Annotate(state.status(), node.name);
  if (known == Known::kNothing || state->is_new) {
    TAHOMA_RETURN_IF_ERROR(
        Annotate(EnsureLease(node, *state), fmt::format("{}: its lease", node.name)));
  }
  absl::StatusOr<std::size_t> slices = EnsureSlices(node, *state);
  if (!slices.ok()) return Annotate(slices.status(), node.name);
  return slices;
}

absl::Status VirtualNodes::RenewLease(std::uint32_t index, Look look) {
  const VirtualNode node = NodeAt(plan_, index);
  const absl::Status renewed = Renew(node.name);
  if (absl::IsNotFound(renewed)) return Ensure(index, Known::kNothing).status();
  TAHOMA_RETURN_IF_ERROR(Annotate(renewed, fmt::format("{}: its lease", node.name)));
  if (look == Look::kLeaseOnly) return absl::OkStatus();
  return Annotate(EnsureNode(node, Known::kMade).status(), node.name);
}

std::string VirtualNodes::FirstBeyond() {
  const std::string name = NodeAt(plan_, plan_.nodes).name;
  return api_.Get(kube::kNodes, {"", name}).ok() ? name : std::string();
}

}  // namespace tahoma::sim

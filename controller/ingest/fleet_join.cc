#include "controller/ingest/fleet_join.h"

#include <algorithm>

#include "controller/model/cordoned_chips.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// Returns whether the Node object says what the node was made of, devices apart.
bool Says(const kube::Node& object, const Node& node) {
  const bool same_amounts =
      object.allocatable.has_value() == (node.allocatable != nullptr) &&
      (node.allocatable == nullptr || *object.allocatable == *node.allocatable);
  return object.labels == node.labels && object.taints == node.taints &&
         object.schedulable == !node.cordoned && object.ready == node.ready && same_amounts;
}

NodeFacts FactsOf(kube::Node node) {
  return {.name = std::move(node.name),
          .labels = std::move(node.labels),
          .taints = std::move(node.taints),
          .schedulable = node.schedulable,
          .ready = node.ready,
          .allocatable = std::move(node.allocatable),
          .devices = {}};
}

// Returns the facts that the node was made of, devices apart.
NodeFacts FactsOf(const Node& node) {
  NodeFacts facts = {.name = node.name,
                     .labels = node.labels,
                     .taints = node.taints,
                     .schedulable = !node.cordoned,
                     .ready = node.ready,
                     .allocatable = std::nullopt,
                     .devices = {}};
  if (node.allocatable != nullptr) facts.allocatable = *node.allocatable;
  return facts;
}

}  // namespace

std::optional<Command> FleetJoin::OnNode(kube::Node node) {
  Entry& entry = nodes_[node.name];
  std::ranges::sort(node.labels);  // as an interned node has them
  if (entry.node != nullptr && entry.annotation == node.annotation && Says(node, *entry.node)) {
    return std::nullopt;
  }
  entry.annotation = std::move(node.annotation);
  return Tell(entry, FactsOf(std::move(node)), nullptr, {});
}

std::optional<Command> FleetJoin::OnNodeGone(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end() || found->second.node == nullptr) return std::nullopt;
  found->second.node = nullptr;
  if (found->second.slices.empty() && found->second.others.empty()) nodes_.erase(found);
  return NodeGone{name};
}

absl::Status FleetJoin::Check(const kube::ResourceSlice& slice) const {
  if (slice.node.empty()) return absl::OkStatus();
  if (slice.driver == kNeuronDriver && slice.pool != slice.node) {
    return InvalidArgument("its pool is {} and its node {}: the pool of a node has the node's name",
                           slice.pool, slice.node);
  }
  // Drivers name a node's pool after the node: another node's devices are not this node's to show.
  if (slice.pool != slice.node && nodes_.contains(slice.pool)) {
    return InvalidArgument("its pool is {}, the name of another node, and its node {}", slice.pool,
                           slice.node);
  }
  const auto known = node_of_slice_.find(slice.name);
  if (known != node_of_slice_.end() && known->second != slice.node) {
    return InvalidArgument("it is of node {}, and the slice of that name is node {}'s", slice.node,
                           known->second);
  }
  return absl::OkStatus();
}

std::optional<Command> FleetJoin::OnSlice(kube::ResourceSlice slice) {
  if (slice.node.empty() || !Check(slice).ok()) return std::nullopt;
  node_of_slice_[slice.name] = slice.node;
  Entry& entry = nodes_[slice.node];
  if (slice.driver != kNeuronDriver) {
    const std::string name = slice.name;
    entry.others[name] = others_packer_.Pack(std::move(slice));
    return TellAgain(entry);
  }
  SliceDevices devices = {.packed = slice_inventory_.Pack(slice.devices)};
  if (!devices.packed) devices.plain = slice.devices;
  const auto kept = std::make_shared<const SliceDevices>(std::move(devices));
  ChangeSlices(entry, [&] {
    entry.slices[slice.name] = {
        .generation = slice.generation, .slices_in_pool = slice.slices_in_pool, .devices = kept};
  });
  return TellAgain(entry, kept.get(), std::move(slice.devices));
}

std::optional<Command> FleetJoin::OnSliceGone(const std::string& name) {
  const auto slice = node_of_slice_.find(name);
  if (slice == node_of_slice_.end()) return std::nullopt;
  const std::string node = slice->second;
  node_of_slice_.erase(slice);
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return std::nullopt;
  Entry& entry = found->second;
  if (entry.others.erase(name) == 0) ChangeSlices(entry, [&] { entry.slices.erase(name); });
  if (entry.slices.empty()) entry.earlier.reset();
  if (entry.slices.empty() && entry.others.empty() && entry.node == nullptr) {
    nodes_.erase(found);
    return std::nullopt;
  }
  return TellAgain(entry);
}

std::optional<std::vector<FleetJoin::DevicesPtr>> FleetJoin::Complete(const Entry& entry) {
  std::int64_t newest = -1;
  for (const auto& [name, slice] : entry.slices) newest = std::max(newest, slice.generation);
  std::vector<DevicesPtr> devices;
  std::int64_t wanted = 0;
  for (const auto& [name, slice] : entry.slices) {
    if (slice.generation != newest) continue;
    devices.push_back(slice.devices);
    wanted = slice.slices_in_pool;
  }
  if (devices.empty() || static_cast<std::int64_t>(devices.size()) != wanted) return std::nullopt;
  return devices;
}

std::vector<FleetJoin::DevicesPtr> FleetJoin::DevicesOf(const Entry& entry) {
  if (entry.earlier) return *entry.earlier;
  return Complete(entry).value_or(std::vector<DevicesPtr>());
}

template <typename Change>
void FleetJoin::ChangeSlices(Entry& entry, const Change& change) {
  std::optional<std::vector<DevicesPtr>> before = std::move(entry.earlier);
  entry.earlier.reset();
  if (!before) before = Complete(entry);
  change();
  if (!Complete(entry)) entry.earlier = std::move(before);
}

std::shared_ptr<const NodeOffers> FleetJoin::OffersOf(const Entry& entry) {
  if (entry.others.empty()) return nullptr;
  std::vector<OfferedSlicePtr> slices;
  for (const auto& [name, slice] : entry.others) slices.push_back(slice);
  return std::make_shared<const NodeOffers>(std::move(slices));
}

Command FleetJoin::Tell(Entry& entry, NodeFacts facts, const SliceDevices* at_hand,
                        std::vector<Device> unpacked) {
  for (const DevicesPtr& part : DevicesOf(entry)) {
    if (part.get() == at_hand && facts.devices.empty()) {
      facts.devices = std::exchange(unpacked, {});
    } else if (part->packed) {
      part->packed->AppendTo(facts.devices);
    } else {
      facts.devices.insert(facts.devices.end(), part->plain.begin(), part->plain.end());
    }
  }
  facts.others = OffersOf(entry);
  AddCordonTaints(ParseCordonedChips(entry.annotation), facts.devices);
  entry.node = inventory_.Intern(std::move(facts));
  return NodeSeen{entry.node};
}

std::optional<Command> FleetJoin::TellAgain(Entry& entry, const SliceDevices* at_hand,
                                            std::vector<Device> unpacked) {
  if (entry.node == nullptr) return std::nullopt;
  return Tell(entry, FactsOf(*entry.node), at_hand, std::move(unpacked));
}

}  // namespace tahoma::controller

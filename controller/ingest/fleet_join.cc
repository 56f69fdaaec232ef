#include "controller/ingest/fleet_join.h"

#include <algorithm>

#include "controller/model/cordoned_chips.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// Returns whether the slice is of a node's pool of our driver.
bool IsOfOneNode(const kube::ResourceSlice& slice) {
  return slice.driver == kNeuronDriver && !slice.node.empty();
}

}  // namespace

std::optional<Command> FleetJoin::OnNode(kube::Node node) {
  Entry& entry = nodes_[node.name];
  if (entry.node == node) return std::nullopt;
  const std::string name = node.name;
  entry.node = std::move(node);
  return CommandFor(name, entry);
}

std::optional<Command> FleetJoin::OnNodeGone(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end() || !found->second.node) return std::nullopt;
  found->second.node.reset();
  if (found->second.slices.empty()) nodes_.erase(found);
  return NodeGone{name};
}

absl::Status FleetJoin::Check(const kube::ResourceSlice& slice) const {
  if (!IsOfOneNode(slice)) return absl::OkStatus();
  if (slice.pool != slice.node) {
    return InvalidArgument("its pool is {} and its node {}: the pool of a node has the node's name",
                           slice.pool, slice.node);
  }
  const auto known = node_of_slice_.find(slice.name);
  if (known != node_of_slice_.end() && known->second != slice.node) {
    return InvalidArgument("it is of node {}, and the slice of that name is node {}'s", slice.node,
                           known->second);
  }
  return absl::OkStatus();
}

std::optional<Command> FleetJoin::OnSlice(kube::ResourceSlice slice) {
  if (!IsOfOneNode(slice) || !Check(slice).ok()) return std::nullopt;
  const std::string node = slice.node;
  node_of_slice_[slice.name] = node;
  Entry& entry = nodes_[node];
  ChangeSlices(entry, [&] { entry.slices[slice.name] = std::move(slice); });
  return CommandFor(node, entry);
}

std::optional<Command> FleetJoin::OnSliceGone(const std::string& name) {
  const auto slice = node_of_slice_.find(name);
  if (slice == node_of_slice_.end()) return std::nullopt;
  const std::string node = slice->second;
  node_of_slice_.erase(slice);
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return std::nullopt;
  Entry& entry = found->second;
  ChangeSlices(entry, [&] { entry.slices.erase(name); });
  if (entry.slices.empty()) {
    entry.earlier.reset();
    if (!entry.node) {
      nodes_.erase(found);
      return std::nullopt;
    }
  }
  return CommandFor(node, entry);
}

std::optional<std::vector<const kube::ResourceSlice*>> FleetJoin::Complete(const Entry& entry) {
  std::int64_t newest = -1;
  for (const auto& [name, slice] : entry.slices) newest = std::max(newest, slice.generation);
  std::vector<const kube::ResourceSlice*> slices;
  for (const auto& [name, slice] : entry.slices) {
    if (slice.generation == newest) slices.push_back(&slice);
  }
  if (slices.empty()) return std::nullopt;
  const auto wanted = slices.back()->slices_in_pool;
  if (static_cast<std::int64_t>(slices.size()) != wanted) return std::nullopt;
  return slices;
}

std::vector<Device> FleetJoin::DevicesOf(const Entry& entry) {
  if (entry.earlier) return *entry.earlier;
  std::vector<Device> devices;
  const auto slices = Complete(entry);
  if (!slices) return devices;
  for (const kube::ResourceSlice* slice : *slices) {
    devices.insert(devices.end(), slice->devices.begin(), slice->devices.end());
  }
  return devices;
}

template <typename Change>
void FleetJoin::ChangeSlices(Entry& entry, const Change& change) {
  std::optional<std::vector<Device>> before = std::move(entry.earlier);
  entry.earlier.reset();
  if (!before && Complete(entry)) before = DevicesOf(entry);
  change();
  if (!Complete(entry)) entry.earlier = std::move(before);
}

std::optional<Command> FleetJoin::CommandFor(const std::string& name, Entry& entry) const {
  if (!entry.node) return std::nullopt;
  auto facts = std::make_shared<NodeFacts>();
  facts->name = name;
  facts->labels = entry.node->labels;
  facts->taints = entry.node->taints;
  facts->schedulable = entry.node->schedulable;
  facts->ready = entry.node->ready;
  facts->allocatable = entry.node->allocatable;
  facts->devices = DevicesOf(entry);
  AddCordonTaints(ParseCordonedChips(entry.node->annotation), facts->devices);
  return NodeSeen{std::move(facts)};
}

}  // namespace tahoma::controller

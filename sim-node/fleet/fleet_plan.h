// Which nodes a fleet of virtual nodes consists of: each one's name, instance type and place, from
// its index alone.
//
// Nothing of a node is kept. A node with an index is the same in every fleet of that name and those
// instance types, however many nodes there are: a larger fleet has more of them.
//
// Scope: names and values. virtual_nodes.h makes objects of them.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dra-plugin/inventory/pool.h"
#include "lib/hw/catalogue.h"
#include "lib/wire/messages.h"

namespace tahoma::sim {

// Names have five digits.
inline constexpr std::uint32_t kFleetNodesMax = 100'000;
inline constexpr std::size_t kFleetNameMax = 40;

// Nodes below one node of each network layer, from the top. The lowest are an UltraCluster
// (hw::kNetwork); how many of these a layer joins is not published.
inline constexpr std::uint32_t kNodesBelowLayer[] = {16'384, 2'048, 128};

struct FleetPlan {
  // The number of nodes of a type, relative to the other types.
  struct Share {
    const hw::InstanceType* type = nullptr;
    std::uint32_t nodes = 1;
  };

  std::uint32_t nodes = 0;
  std::string name = "fleet";
  std::vector<Share> types = {};  // at least one
  dra::Publish publish = {};
  std::string neuron_driver_version = "2.26.10.0";
  // The effect of the taint tahoma.dev/virtual-node, which says that nobody runs pods there.
  std::optional<kube::TaintEffect> taint = kube::TaintEffect::kNoSchedule;
};

struct VirtualNode {
  std::uint32_t index = 0;
  std::string name = {};
  const hw::InstanceType* type = nullptr;
  std::optional<wire::UltraServer> ultra_server = {};  // as wired: it elects nothing
  std::vector<std::string> network_layers = {};        // three, top first
};

// kInvalidArgument, naming the key of the configuration, when the name is none or too long.
absl::Status CheckFleetName(const std::string& name);

// Parses the configuration's map of instance types to their shares, {"trn2u.48xlarge": "3",
// "trn2.48xlarge": "1"}. kInvalidArgument when it is empty, a type is unknown, or a share is not 1
// to 1000.
absl::StatusOr<std::vector<FleetPlan::Share>> ParseFleetTypes(
    const std::map<std::string, std::string>& words);

// The types alternate by their shares, four nodes at a time, so that the members of an UltraServer
// follow each other. The last UltraServer of a fleet may lack members.
VirtualNode NodeAt(const FleetPlan& plan, std::uint32_t index);

// As the node's own sim-node would tell it, with every chip healthy.
wire::Inventory InventoryOf(const FleetPlan& plan, const VirtualNode& node);

// Why chips of a node are broken, by their number: values of the taint tahoma.dev/unhealthy.
using ChipFaults = std::map<int, std::string>;

// Parses "3=hbm-uncorrectable,5=dead"; nothing in an empty text. kInvalidArgument when the type has
// no such chip, one is named twice, or a reason is no value of a taint.
absl::StatusOr<ChipFaults> ParseChipFaults(const std::string& text, const hw::InstanceType& type);

// The devices that the node shows. `faults` are of its chips.
dra::DevicePool PoolOf(const FleetPlan& plan, const VirtualNode& node,
                       const ChipFaults& faults = {});

}  // namespace tahoma::sim

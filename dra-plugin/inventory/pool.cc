#include "dra-plugin/inventory/pool.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "dra-plugin/inventory/device_groups.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/driver/device_name.h"
#include "lib/hw/catalogue.h"

namespace tahoma::dra {
namespace {

using hw::DeviceKind;
using hw::DeviceName;

constexpr std::string_view kNodeLost = "node-lost";
constexpr std::string_view kLinkDown = "link-down";
constexpr std::string_view kUnknown = "unknown";

std::string TahomaName(std::string_view name) { return fmt::format("tahoma.dev/{}", name); }

// A name without a domain is in the driver's.
void Add(Device& device, std::string_view name, AttributeValue value) {
  device.attributes.push_back({kube::ParseQualifiedName(name, kDriver), std::move(value)});
}

Device Named(const DeviceName& name) {
  Device device;
  device.name = hw::ToString(name);
  return device;
}

// The inputs of BuildPool's parts.
struct Source {
  const wire::Inventory& inventory;
  const hw::InstanceType& type;
  const PoolOptions& options;

  bool partitions() const { return options.publish.lnc1 || options.publish.lnc2; }
  bool node() const { return options.publish.node && inventory.ultra_server.has_value(); }
  int cores_per_chip() const { return type.chip->physical_cores; }
  // The chips that fill one counter set: 4 chips of 8 cores, 16 chips of 2 cores.
  int chips_per_set() const { return static_cast<int>(kMaxCountersPerSet) / cores_per_chip(); }
  // Counters are needed as soon as two devices can overlap.
  bool counters() const { return partitions() || node(); }
};

absl::Status CheckChips(const wire::Inventory& inventory, const hw::InstanceType& type) {
  bool complete = inventory.chips.size() == static_cast<std::size_t>(type.chip_count());
  for (std::size_t i = 0; complete && i < inventory.chips.size(); ++i) {
    complete = inventory.chips[i].index == static_cast<int>(i);
  }
  if (complete) return absl::OkStatus();
  return InvalidArgument("node {} reports {} chips; a {} has chips 0 to {}, broken ones included",
                         inventory.node_name, inventory.chips.size(), type.name,
                         type.chip_count() - 1);
}

void AddIdentity(const Source& source, std::string_view resource_type, Device& device) {
  Add(device, "instanceType", source.inventory.instance_type);
  Add(device, "resourceType", std::string(resource_type));
  if (!source.inventory.driver_version.empty()) {
    Add(device, "neuronDriverVersion", source.inventory.driver_version);
  }
}

// Adds the version to devices that AWS's driver also has. Our other devices go without: each byte
// would be published 192 times.
void AddPluginVersion(const Source& source, Device& device) {
  Add(device, "draDriverVersion", Version{source.options.driver_version});
}

void AddPlace(const Source& source, Device& device) {
  const wire::Inventory& inventory = source.inventory;
  for (std::size_t i = 0; i < inventory.network_layers.size(); ++i) {
    Add(device, fmt::format("networkNodeLayer{}", i + 1), inventory.network_layers[i]);
  }
  if (inventory.ultra_server.has_value() && !inventory.capacity_block_id.empty()) {
    Add(device, "capacityBlockId", inventory.capacity_block_id);
  }
}

// Adds the election as AWS's driver shows it in /sys/class/neuron_device, with AWS's words for
// "none". All attributes are always present: nodes that differ only in their election stay equal
// for readers that group nodes.
void AddElection(const wire::UltraServerElection& election, Device& device) {
  constexpr std::string_view kNobody = "0000000000000000";
  std::string modes = election.running ? "busy" : "";
  for (const hw::UltraServerMode mode : election.modes) {
    modes += fmt::format("{}{}", modes.empty() ? "" : ",", hw::ModeName(mode));
  }
  const auto add = [&](std::string_view name, std::string_view value) {
    Add(device, TahomaName(name), std::string(value));
  };
  add("ultraserverModes", modes);
  add("ultraserverMode", hw::ModeName(election.mode));
  add("ultraserverServerId2", election.server_id_2.empty() ? kNobody : election.server_id_2);
  add("ultraserverServerId4", election.server_id_4.empty() ? kNobody : election.server_id_4);
}

// Adds the node's place. The election is the same for all devices, so only the first device of each
// kind shows the election. Some such device is always shown, and the other devices save the bytes.
void AddUltraServer(const Source& source, bool first, Device& device) {
  if (!source.inventory.ultra_server.has_value()) return;
  const wire::UltraServer& ultra_server = *source.inventory.ultra_server;
  Add(device, TahomaName("z"), std::int64_t{ultra_server.node_id});
  Add(device, TahomaName("ultraserverId"), ultra_server.id);
  if (first && ultra_server.election) AddElection(*ultra_server.election, device);
}

void AddCoordinates(const Source& source, int chip, Device& device) {
  const torus::Coord at = source.type.torus.CoordOf(torus::ChipIndex(chip));
  Add(device, TahomaName("x"), std::int64_t{at.x});
  Add(device, TahomaName("y"), std::int64_t{at.y});
}

void AddTaints(const Source& source, std::string_view reason, Device& device) {
  if (source.options.managed_taint) {
    device.taints.push_back({std::string(kManagedTaint), "", TaintEffect::kNoSchedule});
  }
  if (source.options.node_lost) reason = kNodeLost;
  if (reason.empty()) return;
  const auto effect = source.options.fault_effects.find(std::string(reason));
  device.taints.push_back(
      {std::string(kUnhealthyTaint), std::string(reason),
       effect == source.options.fault_effects.end() ? TaintEffect::kNoExecute : effect->second});
}

// Returns why a chip must not be used; empty for a good chip.
std::string Unhealthy(const Source& source, const wire::Chip& chip) {
  if (!chip.healthy) return chip.reason.empty() ? std::string(kUnknown) : chip.reason;
  const std::string link_down(kLinkDown);
  const bool counts = source.options.fault_effects.contains(link_down);
  return counts && !chip.links_down.empty() ? link_down : "";
}

// AWS's row, column and group numbers: only on a torus, and not in an UltraServer
// (docs/reference/aws-dra-driver.md#devices).
void AddAwsTopology(const Source& source, int chip, Device& device) {
  if (source.inventory.ultra_server.has_value()) return;
  if (source.type.fabric != hw::FabricKind::kTorus) return;
  Add(device, "topology_x", std::int64_t{chip / 4});  // the row
  Add(device, "topology_y", std::int64_t{chip % 4});  // the column
  Add(device, "topology4_id", std::int64_t{chip / 4});
  if (source.type.chip_count() >= 8) {
    Add(device, "topology8_id", std::int64_t{chip / 8});
  }
}

std::string ChipCounter(int chip) { return fmt::format("chip-{}", chip); }

Device ChipDevice(const Source& source, const wire::Chip& chip) {
  Device device = Named({.kind = DeviceKind::kChip, .chip = chip.index});
  Add(device, "deviceId", std::int64_t{chip.index});
  AddIdentity(source, "neuron_device", device);
  AddPluginVersion(source, device);
  AddPlace(source, device);
  AddAwsTopology(source, chip.index, device);
  std::ranges::copy(DeviceGroups(source.type, chip.index), std::back_inserter(device.attributes));
  AddCoordinates(source, chip.index, device);
  AddUltraServer(source, chip.index == 0, device);
  std::string links;
  for (const std::string& link : chip.links_down) links += (links.empty() ? "" : ",") + link;
  if (!links.empty()) Add(device, TahomaName("linksDown"), links);
  if (source.counters()) {
    device.consumes.push_back({"node", {{ChipCounter(chip.index), source.cores_per_chip()}}});
  }
  AddTaints(source, Unhealthy(source, chip), device);
  return device;
}

// A whole member of an UltraServer; unhealthy as soon as one of its chips is.
Device NodeDevice(const Source& source) {
  Device device = Named({.kind = DeviceKind::kNode});
  device.consumes = {{"node", {}}};
  AddIdentity(source, "neuron_node", device);
  AddPluginVersion(source, device);
  AddPlace(source, device);
  AddUltraServer(source, true, device);
  std::string reason;
  for (const wire::Chip& chip : source.inventory.chips) {
    device.consumes[0].counters.push_back({ChipCounter(chip.index), source.cores_per_chip()});
    if (reason.empty()) reason = Unhealthy(source, chip);
  }
  AddTaints(source, reason, device);
  return device;
}

Device CoreDevice(const Source& source, const wire::Chip& chip, int lnc, int core) {
  Device device = Named({.kind = DeviceKind::kCore, .chip = chip.index, .lnc = lnc, .core = core});
  AddIdentity(source, "neuron_core", device);
  AddCoordinates(source, chip.index, device);
  AddUltraServer(source, chip.index == 0 && core == 0, device);
  Add(device, TahomaName("chip"), std::int64_t{chip.index});
  Add(device, TahomaName("lnc"), std::int64_t{lnc});
  Add(device, TahomaName("core"), std::int64_t{core});
  Add(device, TahomaName("hbmBank"), std::int64_t{hw::HbmBank(*source.type.chip, lnc, core)});
  device.consumes.push_back({"node", {{ChipCounter(chip.index), lnc}}});
  CounterSet cores = {.name = fmt::format("phys-{}", chip.index / source.chips_per_set()),
                      .counters = {}};
  for (int i = 0; i < lnc; ++i) {
    const int physical =
        source.cores_per_chip() * (chip.index % source.chips_per_set()) + lnc * core + i;
    cores.counters.push_back({fmt::format("core-{}", physical), 1});
  }
  device.consumes.push_back(std::move(cores));
  AddTaints(source, Unhealthy(source, chip), device);
  return device;
}

std::vector<Device> CoreDevices(const Source& source, int lnc) {
  std::vector<Device> devices;
  if (!hw::HasLnc(*source.type.chip, lnc)) return devices;
  for (const wire::Chip& chip : source.inventory.chips) {
    for (int core = 0; core < hw::LogicalCores(*source.type.chip, lnc); ++core) {
      devices.push_back(CoreDevice(source, chip, lnc, core));
    }
  }
  return devices;
}

std::vector<CounterSet> CounterSets(const Source& source) {
  std::vector<CounterSet> sets;
  if (!source.counters()) return sets;
  CounterSet node = {.name = "node", .counters = {}};
  for (const wire::Chip& chip : source.inventory.chips) {
    node.counters.push_back({ChipCounter(chip.index), source.cores_per_chip()});
  }
  sets.push_back(std::move(node));
  if (!source.partitions()) return sets;
  const int chips = source.type.chip_count();
  for (int first = 0; first < chips; first += source.chips_per_set()) {
    CounterSet cores = {.name = fmt::format("phys-{}", first / source.chips_per_set()),
                        .counters = {}};
    const int count = std::min(source.chips_per_set(), chips - first) * source.cores_per_chip();
    for (int i = 0; i < count; ++i) cores.counters.push_back({fmt::format("core-{}", i), 1});
    sets.push_back(std::move(cores));
  }
  return sets;
}

}  // namespace

absl::StatusOr<Publish> ParsePublish(const std::vector<std::string>& words) {
  Publish publish = {.chips = false, .lnc1 = false, .lnc2 = false, .node = false};
  for (const std::string& word : words) {
    bool* flag = word == "chips"  ? &publish.chips
                 : word == "lnc1" ? &publish.lnc1
                 : word == "lnc2" ? &publish.lnc2
                 : word == "node" ? &publish.node
                                  : nullptr;
    if (flag == nullptr) {
      return InvalidArgument("publish: \"{}\" is unknown; expected chips, lnc1, lnc2 or node",
                             word);
    }
    if (*flag) return InvalidArgument("publish: \"{}\" is given twice", word);
    *flag = true;
  }
  if (words.empty()) {
    return InvalidArgument("publish: the list is empty; expected some of chips, lnc1, lnc2, node");
  }
  return publish;
}

std::string_view UnhealthyReason(const Device& device) {
  for (const Taint& taint : device.taints) {
    if (taint.key == kUnhealthyTaint) return taint.value;
  }
  return {};
}

absl::StatusOr<FaultEffects> ParseFaultEffects(const std::map<std::string, std::string>& words) {
  static constexpr std::array kReasons = {
      "sram-uncorrectable", "nc-uncorrectable", "hbm-uncorrectable", "dma", "dead", "unknown",
      "node-lost",          "link-down",        "efa-down"};
  FaultEffects effects;
  for (const auto& [reason, word] : words) {
    if (std::ranges::find(kReasons, reason) == kReasons.end()) {
      return InvalidArgument("faultEffects: the reason \"{}\" is unknown; expected one of {}",
                             reason, fmt::join(kReasons, ", "));
    }
    if (word != "NoSchedule" && word != "NoExecute") {
      return InvalidArgument("faultEffects: {} is \"{}\"; expected NoSchedule or NoExecute", reason,
                             word);
    }
    effects[reason] = word == "NoExecute" ? TaintEffect::kNoExecute : TaintEffect::kNoSchedule;
  }
  return effects;
}

absl::StatusOr<DevicePool> BuildPool(const wire::Inventory& inventory, const PoolOptions& options) {
  const hw::InstanceType* type = hw::FindInstanceType(inventory.instance_type);
  if (type == nullptr) {
    return InvalidArgument("node {}: instance type \"{}\" is unknown; expected one of {}",
                           inventory.node_name, inventory.instance_type, hw::InstanceTypeNames());
  }
  TAHOMA_RETURN_IF_ERROR(CheckChips(inventory, *type));
  const Source source = {.inventory = inventory, .type = *type, .options = options};
  DevicePool pool = {.counter_sets = CounterSets(source), .groups = {}};
  std::vector<Device> whole;
  if (options.publish.chips) {
    for (const wire::Chip& chip : inventory.chips) whole.push_back(ChipDevice(source, chip));
  }
  if (source.node()) whole.push_back(NodeDevice(source));
  if (!whole.empty()) pool.groups.push_back(std::move(whole));
  if (options.publish.lnc2) pool.groups.push_back(CoreDevices(source, 2));
  if (options.publish.lnc1) pool.groups.push_back(CoreDevices(source, 1));
  return pool;
}

std::vector<SliceContent> CutIntoSlices(const DevicePool& pool) {
  std::vector<SliceContent> slices;
  if (pool.together) {
    SliceContent& all = slices.emplace_back();
    all.counter_sets = pool.counter_sets;
    for (const std::vector<Device>& group : pool.groups) {
      all.devices.insert(all.devices.end(), group.begin(), group.end());
    }
    TAHOMA_CHECK(all.devices.size() <= kMaxDevicesPerSliceBefore135);
    return slices;
  }
  if (!pool.counter_sets.empty()) {
    TAHOMA_CHECK(pool.counter_sets.size() <= kMaxCounterSetsPerSlice);
    slices.push_back({.counter_sets = pool.counter_sets, .devices = {}});
  }
  for (const std::vector<Device>& group : pool.groups) {
    for (std::size_t begin = 0; begin < group.size(); begin += kMaxDevicesPerSlice) {
      const std::size_t end = std::min(begin + kMaxDevicesPerSlice, group.size());
      slices.push_back({.counter_sets = {},
                        .devices = {group.begin() + static_cast<std::ptrdiff_t>(begin),
                                    group.begin() + static_cast<std::ptrdiff_t>(end)}});
    }
  }
  if (slices.empty()) slices.emplace_back();
  return slices;
}

}  // namespace tahoma::dra

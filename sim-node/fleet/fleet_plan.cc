#include "sim-node/fleet/fleet_plan.h"

#include <algorithm>
#include <charconv>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/kube/name.h"

namespace tahoma::sim {
namespace {

constexpr int kShareMax = 1000;
constexpr auto kMembers = static_cast<std::uint32_t>(hw::kUltraServerNodes);

std::optional<int> ParseNumber(const std::string& text, int least, int most) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || at != end || number < least || number > most) return std::nullopt;
  return number;
}

const hw::InstanceType* TypeAt(const FleetPlan& plan, std::uint32_t index) {
  std::uint32_t all = 0;
  for (const FleetPlan::Share& share : plan.types) all += share.nodes;
  TAHOMA_CHECK(all > 0);
  std::uint32_t place = index / kMembers % all;
  for (const FleetPlan::Share& share : plan.types) {
    if (place < share.nodes) return share.type;
    place -= share.nodes;
  }
  return plan.types.back().type;
}

}  // namespace

absl::Status CheckFleetName(const std::string& name) {
  if (const auto wrong = kube::WrongDns1123Label(name)) {
    return InvalidArgument("fleetNodes.name \"{}\": {}", name, *wrong);
  }
  if (name.size() <= kFleetNameMax) return absl::OkStatus();
  return InvalidArgument("fleetNodes.name \"{}\" has {} characters; at most {} leave room for more",
                         name, name.size(), kFleetNameMax);
}

absl::StatusOr<std::vector<FleetPlan::Share>> ParseFleetTypes(
    const std::map<std::string, std::string>& words) {
  std::vector<FleetPlan::Share> shares;
  for (const auto& [name, text] : words) {
    const hw::InstanceType* type = hw::FindInstanceType(name);
    if (type == nullptr) {
      return InvalidArgument("fleetNodes.instanceTypes: \"{}\" is unknown; known are {}", name,
                             hw::InstanceTypeNames());
    }
    const std::optional<int> share = ParseNumber(text, 1, kShareMax);
    if (!share) {
      return InvalidArgument("fleetNodes.instanceTypes: {} is \"{}\"; expected 1 to {}", name, text,
                             kShareMax);
    }
    shares.push_back({.type = type, .nodes = static_cast<std::uint32_t>(*share)});
  }
  if (!shares.empty()) return shares;
  return InvalidArgument(
      "fleetNodes.instanceTypes is empty; name at least one, as trn2u.48xlarge: 1");
}

VirtualNode NodeAt(const FleetPlan& plan, std::uint32_t index) {
  VirtualNode node = {.index = index,
                      .name = fmt::format("{}-{:05}", plan.name, index),
                      .type = TypeAt(plan, index)};
  if (node.type->ultra_server) {
    node.ultra_server = {.id = fmt::format("us-{}-{:05}", plan.name, index / kMembers),
                         .node_id = static_cast<int>(index % kMembers),
                         .mode = hw::kUltraServerNodes};
  }
  int layer = 0;
  for (const std::uint32_t below : kNodesBelowLayer) {
    node.network_layers.push_back(fmt::format("nn-{}-{}-{}", plan.name, ++layer, index / below));
  }
  return node;
}

wire::Inventory InventoryOf(const FleetPlan& plan, const VirtualNode& node) {
  wire::Inventory inventory = {.generation = 1,
                               .node_name = node.name,
                               .instance_type = std::string(node.type->name),
                               .ultra_server = node.ultra_server,
                               .network_layers = node.network_layers,
                               .driver_version = plan.neuron_driver_version};
  for (int chip = 0; chip < node.type->chip_count(); ++chip) {
    inventory.chips.push_back(
        {.index = chip, .bdf = std::string(node.type->chips[static_cast<std::size_t>(chip)].bdf)});
  }
  return inventory;
}

absl::StatusOr<ChipFaults> ParseChipFaults(const std::string& text, const hw::InstanceType& type) {
  ChipFaults faults;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = item.find('=');
    const auto chip = ParseNumber(item.substr(0, equals), 0, type.chip_count() - 1);
    if (!chip || equals == std::string::npos) {
      return InvalidArgument("\"{}\" is no chip and reason; expected 0 to {}, as 3=dead", item,
                             type.chip_count() - 1);
    }
    const std::string reason = item.substr(equals + 1);
    if (reason.empty() || kube::WrongLabelValue(reason)) {
      return InvalidArgument("chip {} has the reason \"{}\"; expected one as hbm-uncorrectable",
                             *chip, reason);
    }
    if (!faults.emplace(*chip, reason).second) {
      return InvalidArgument("chip {} is named twice", *chip);
    }
  }
  return faults;
}

dra::DevicePool PoolOf(const FleetPlan& plan, const VirtualNode& node, const ChipFaults& faults) {
  wire::Inventory inventory = InventoryOf(plan, node);
  for (const auto& [chip, reason] : faults) {
    wire::Chip& broken = inventory.chips[static_cast<std::size_t>(chip)];
    broken.healthy = false;
    broken.reason = reason;
  }
  absl::StatusOr<dra::DevicePool> pool = dra::BuildPool(inventory, {.publish = plan.publish});
  TAHOMA_CHECK_OK(pool.status());  // type and chips are the catalogue's
  return *std::move(pool);
}

}  // namespace tahoma::sim

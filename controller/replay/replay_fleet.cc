#include "controller/replay/replay_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "lib/base/status.h"
#include "lib/hw/catalogue.h"

namespace tahoma::controller {
namespace {

constexpr std::string_view kUltraServers = "UltraServers";
constexpr std::string_view kUltraServer = "UltraServer";
constexpr const char* kUltraServerType = "trn2u.48xlarge";
constexpr const char* kFleetForms = "such as 2-UltraServers, 8-trn2.48xlarge, or both joined by +";

void Put(Device& device, std::string_view domain, const char* id, AttributeValue value) {
  device.attributes.push_back({{std::string(domain), id}, std::move(value)});
}

// Returns a node; `domain` is the name of the UltraServer, empty for a lone instance.
NodeFacts NodeOf(const std::string& name, const std::string& type, const std::string& domain,
                 int z) {
  NodeFacts node;
  node.name = name;
  node.labels = {{"kubernetes.io/hostname", name}};
  const hw::InstanceType& instance = *hw::FindInstanceType(type);
  for (int chip = 0; chip < instance.chip_count(); ++chip) {
    Device device;
    device.name = fmt::format("neuron-device-{}", chip);
    Put(device, kNeuronDriver, "resourceType", std::string("neuron_device"));
    Put(device, kNeuronDriver, "instanceType", type);
    Put(device, kNeuronDriver, "deviceId", std::int64_t{chip});
    Put(device, kTahomaDomain, "x", std::int64_t{chip % 4});
    Put(device, kTahomaDomain, "y", std::int64_t{chip / 4});
    if (!domain.empty()) {
      Put(device, kTahomaDomain, "ultraserverId", domain);
      Put(device, kTahomaDomain, "z", std::int64_t{z});
    }
    device.taints.push_back({.key = "tahoma.dev/managed", .value = ""});
    node.devices.push_back(std::move(device));
  }
  return node;
}

absl::StatusOr<ReplayFleet::Group> ParseGroup(std::string_view text) {
  ReplayFleet::Group group;
  const std::size_t dash = std::min(text.find('-'), text.size());
  const auto [rest, error] = std::from_chars(text.data(), text.data() + dash, group.count);
  if (error != std::errc() || rest != text.data() + dash || group.count < 1 ||
      group.count > kReplayNodesMost) {
    return InvalidArgument("\"{}\" must begin with a number from 1 to {}, {}", text.substr(0, 64),
                           kReplayNodesMost, kFleetForms);
  }
  const std::string_view kind = text.substr(std::min(dash + 1, text.size()));
  group.ultra_servers = kind == kUltraServers || kind == kUltraServer;
  group.instance_type = group.ultra_servers ? kUltraServerType : std::string(kind);
  const hw::InstanceType* type = hw::FindInstanceType(group.instance_type);
  if (type == nullptr || type->fabric == hw::FabricKind::kRing ||
      type->fabric == hw::FabricKind::kSwitch ||
      (!group.ultra_servers && kind == kUltraServerType)) {
    return InvalidArgument("\"{}\" is no hardware of a replay: {}", kind.substr(0, 64),
                           kFleetForms);
  }
  return group;
}

}  // namespace

std::int64_t ReplayFleet::nodes() const {
  std::int64_t nodes = 0;
  for (const Group& group : groups) {
    nodes += group.count * (group.ultra_servers ? hw::kUltraServerNodes : 1);
  }
  return nodes;
}

std::int64_t ReplayFleet::chips() const {
  std::int64_t chips = 0;
  for (const Group& group : groups) {
    chips += group.count * (group.ultra_servers ? hw::kUltraServerNodes : 1) *
             hw::FindInstanceType(group.instance_type)->chip_count();
  }
  return chips;
}

std::string ReplayFleet::Describe() const {
  std::string text;
  for (const Group& group : groups) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", group.count,
                        !group.ultra_servers ? std::string_view(group.instance_type)
                        : group.count == 1   ? kUltraServer
                                             : kUltraServers);
  }
  return fmt::format("{}: {} chips", text, chips());
}

absl::StatusOr<ReplayFleet> ParseFleet(std::string_view text) {
  ReplayFleet fleet;
  for (std::string_view left = text;;) {
    const std::size_t plus = std::min(left.find('+'), left.size());
    TAHOMA_ASSIGN_OR_RETURN(ReplayFleet::Group group, ParseGroup(left.substr(0, plus)));
    fleet.groups.push_back(std::move(group));
    if (fleet.nodes() > kReplayNodesMost) {
      return InvalidArgument("more than {} nodes; take a smaller fleet", kReplayNodesMost);
    }
    if (plus == left.size()) return fleet;
    left.remove_prefix(plus + 1);
  }
}

std::vector<NodeFacts> NodesOf(const ReplayFleet& fleet) {
  std::vector<NodeFacts> nodes;
  int ultra_servers = 0;
  int alone = 0;
  for (const ReplayFleet::Group& group : fleet.groups) {
    for (std::int64_t i = 0; i < group.count; ++i) {
      if (!group.ultra_servers) {
        nodes.push_back(NodeOf(fmt::format("node-{}", alone++), group.instance_type, "", 0));
        continue;
      }
      const std::string domain = fmt::format("us-{}", ultra_servers++);
      for (int z = 0; z < static_cast<int>(hw::kUltraServerNodes); ++z) {
        nodes.push_back(NodeOf(fmt::format("{}-n{}", domain, z), group.instance_type, domain, z));
      }
    }
  }
  return nodes;
}

}  // namespace tahoma::controller

#include "dra-plugin/claims/allocation.h"

#include <algorithm>
#include <map>
#include <optional>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/hw/block_config.h"
#include "lib/hw/device_config.h"
#include "lib/kube/objects/claim.h"
#include "lib/wire/fields.h"

namespace tahoma::dra {
namespace {

using hw::DeviceKind;
using json = Json;

constexpr std::size_t kMaxResults = 32;   // resource/v1: AllocationResultsMaxSize
constexpr std::size_t kMaxConfigs = 64;   // resource/v1: 2 * DeviceConfigMaxSize
constexpr std::size_t kMaxRequests = 32;  // resource/v1: DeviceRequestsMaxSize
constexpr std::size_t kMaxName = 253;

bool IsName(std::string_view text) { return !text.empty() && text.size() <= kMaxName; }

absl::Status CheckLength(std::string_view list, std::size_t length, std::size_t most) {
  if (length <= most) return absl::OkStatus();
  return InvalidArgument("status.allocation.devices.{} has {} elements; expected at most {}", list,
                         length, most);
}

absl::Status ReadResults(const kube::Allocation& allocation, DriverAllocation& out) {
  TAHOMA_RETURN_IF_ERROR(CheckLength("results", allocation.results.size(), kMaxResults));
  for (const kube::DeviceResult& result : allocation.results) {
    if (!IsName(result.driver)) return InvalidArgument("a result names no driver");
    if (result.driver != kDriverName) continue;
    if (!IsName(result.request) || !IsName(result.pool) || !IsName(result.device)) {
      return InvalidArgument(
          "request \"{}\", pool \"{}\" and device \"{}\" of a result must have 1 to {} bytes each",
          result.request.substr(0, kMaxName), result.pool.substr(0, kMaxName),
          result.device.substr(0, kMaxName), kMaxName);
    }
    if (result.admin_access) {
      return InvalidArgument("request \"{}\" has admin access, which this driver does not offer",
                             result.request);
    }
    TAHOMA_ASSIGN_OR_RETURN(const hw::DeviceName device, hw::ParseDeviceName(result.device));
    out.devices.push_back({.request = result.request, .pool = result.pool, .device = device});
  }
  return absl::OkStatus();
}

absl::Status ReadConfigs(const kube::Allocation& allocation, kube::ConfigSource source,
                         DriverAllocation& out) {
  for (const kube::DeviceConfig& config : allocation.configs) {
    if (config.source != source) continue;
    if (config.driver == hw::kBlockConfigDriver) {
      TAHOMA_ASSIGN_OR_RETURN(const hw::BlockConfig block, hw::ParseBlockConfig(config.parameters));
      out.reclaim_timestamp = block.reclaim_timestamp;
    }
    if (config.driver != kDriverName) continue;
    TAHOMA_RETURN_IF_ERROR(CheckLength("config[].requests", config.requests.size(), kMaxRequests));
    kube::DeviceConfig& added = out.configs.emplace_back(config);
    if (added.parameters == "null") added.parameters = "{}";
    if (!added.parameters.starts_with('{')) {
      return InvalidArgument("the parameters of a configuration are no object");
    }
  }
  return absl::OkStatus();
}

bool Applies(const kube::DeviceConfig& config, const AllocatedDevice& device) {
  if (config.requests.empty()) return true;
  return std::any_of(config.requests.begin(), config.requests.end(), [&](const std::string& name) {
    return name == device.request || name == BaseRequest(device.request);
  });
}

// The configuration of one device, after the later entries have replaced the earlier ones.
struct DeviceSettings {
  std::optional<int> lnc = {};
  std::optional<int> ultra_server_mode = {};
};

absl::StatusOr<DeviceSettings> SettingsOf(const DriverAllocation& allocation,
                                          const AllocatedDevice& device) {
  DeviceSettings settings;
  for (const kube::DeviceConfig& config : allocation.configs) {
    TAHOMA_ASSIGN_OR_RETURN(const hw::DeviceConfig parsed,
                            hw::ParseDeviceConfig(config.parameters));
    if (!Applies(config, device)) continue;
    if (const auto* neuron = std::get_if<hw::NeuronConfig>(&parsed)) {
      settings.lnc = neuron->logical_neuron_core;
    } else {
      settings.ultra_server_mode = std::get<hw::UltraServerConfig>(parsed).ultraserver_mode;
    }
  }
  if (device.device.kind != DeviceKind::kCore) return settings;
  if (settings.lnc.has_value() && *settings.lnc != device.device.lnc) {
    return InvalidArgument("{} is a partition for LNC {}, but its NeuronConfig says {}",
                           hw::ToString(device.device), device.device.lnc, *settings.lnc);
  }
  settings.lnc = device.device.lnc;
  return settings;
}

// Chips whose cores cannot be joined take no NeuronConfig at all, as AWS's driver says
// (docs/reference/aws-dra-driver.md#configurations).
absl::Status CheckLnc(const hw::InstanceType& type, const AllocatedDevice& device,
                      const DeviceSettings& settings) {
  const bool configured = settings.lnc.has_value() && device.device.kind != DeviceKind::kCore;
  if (configured && type.chip->lnc_max == 1) {
    return InvalidArgument("NeuronConfig: dynamic LNC not supported on {}", type.name);
  }
  return absl::OkStatus();
}

// One value for the whole claim, because its environment is one for all its containers.
absl::Status Agree(std::optional<int>& claim, const std::optional<int>& device,
                   std::string_view what) {
  if (!device.has_value()) return absl::OkStatus();
  if (claim.has_value() && *claim != *device) {
    return InvalidArgument("the claim mixes {} {} and {}; use one claim for each", what, *claim,
                           *device);
  }
  claim = device;
  return absl::OkStatus();
}

absl::Status CheckChip(const wire::Inventory& inventory, int chip) {
  const auto found = std::find_if(inventory.chips.begin(), inventory.chips.end(),
                                  [&](const wire::Chip& other) { return other.index == chip; });
  if (found == inventory.chips.end()) {
    return InvalidArgument("node {} ({}) has no chip {}", inventory.node_name,
                           inventory.instance_type, chip);
  }
  if (!found->healthy) {
    return FailedPrecondition("chip {} of node {} is unhealthy: {}", chip, inventory.node_name,
                              found->reason.empty() ? "unknown" : found->reason);
  }
  return absl::OkStatus();
}

// Collects what is held, refusing what is named twice.
class Holdings {
 public:
  absl::Status Add(const hw::DeviceName& device, const wire::Inventory& inventory) {
    if (device.kind == DeviceKind::kNode) {
      if (!inventory.ultra_server.has_value()) {
        return InvalidArgument("node {} is no member of an UltraServer and has no neuron-node",
                               inventory.node_name);
      }
      for (const wire::Chip& chip : inventory.chips) {
        TAHOMA_RETURN_IF_ERROR(AddCores(device, chip.index, 0, wire::kCoresPerChip, inventory));
      }
      return absl::OkStatus();
    }
    if (device.kind == DeviceKind::kChip) {
      return AddCores(device, device.chip, 0, wire::kCoresPerChip, inventory);
    }
    return AddCores(device, device.chip, device.core * device.lnc, device.lnc, inventory);
  }

  void Fill(int lnc, wire::ClaimGrant& grant) const {
    for (const auto& [chip, mask] : masks_) {
      if (mask == 0xff) {
        grant.chips.push_back(chip);
        continue;
      }
      wire::ChipCores part = {.chip = chip, .cores = {}};
      for (int core = 0; core < wire::kCoresPerChip / lnc; ++core) {
        if ((mask >> static_cast<unsigned>(core * lnc) & 1U) != 0) part.cores.push_back(core);
      }
      grant.cores.push_back(std::move(part));
    }
  }

 private:
  absl::Status AddCores(const hw::DeviceName& device, int chip, int first, int count,
                        const wire::Inventory& inventory) {
    TAHOMA_RETURN_IF_ERROR(CheckChip(inventory, chip));
    const unsigned wanted = ((1U << static_cast<unsigned>(count)) - 1U)
                            << static_cast<unsigned>(first);
    unsigned& mask = masks_[chip];
    if ((mask & wanted) != 0) {
      return InvalidArgument("the allocation names cores of {} twice", hw::ToString(device));
    }
    mask |= wanted;
    return absl::OkStatus();
  }

  std::map<int, unsigned> masks_;
};

absl::Status CheckUltraServer(const wire::Inventory& inventory, int mode) {
  if (!inventory.ultra_server.has_value()) {
    return InvalidArgument("UltraServerConfig: node {} ({}) is no member of an UltraServer",
                           inventory.node_name, inventory.instance_type);
  }
  const wire::UltraServer& ultra_server = *inventory.ultra_server;
  if (ultra_server.election && ultra_server.election->running) {
    return FailedPrecondition(
        "UltraServerConfig: ultraserverMode is {}, but node {} has not elected its UltraServer {} "
        "yet",
        mode, inventory.node_name, ultra_server.id);
  }
  if (mode > ultra_server.mode) {
    return FailedPrecondition(
        "UltraServerConfig: ultraserverMode is {}, but {} of UltraServer {} works with at most {} "
        "nodes",
        mode, inventory.node_name, ultra_server.id, ultra_server.mode);
  }
  return absl::OkStatus();
}

// Returns the mode of a claim for a whole node that names none; 0 while nothing is elected.
int WidestMode(const wire::UltraServer& ultra_server) {
  return ultra_server.election && ultra_server.election->running ? 0 : ultra_server.mode;
}

}  // namespace

std::string ClaimRef::ToString() const {
  return fmt::format("claim {}/{} ({})", name_space, name, uid);
}

std::string_view BaseRequest(std::string_view request) {
  return request.substr(0, request.find('/'));
}

absl::StatusOr<DriverAllocation> ReadAllocation(std::string_view claim_json,
                                                const ClaimRef& claim) {
  TAHOMA_ASSIGN_OR_RETURN(const json object, wire::ParseJson(claim_json, "the ResourceClaim"));
  TAHOMA_ASSIGN_OR_RETURN(const kube::ResourceClaim read, kube::ParseResourceClaim(object));
  if (read.metadata.uid != claim.uid) {
    return FailedPrecondition("the claim of that name has uid {}; expected {}, which was deleted",
                              read.metadata.uid.substr(0, kMaxName), claim.uid);
  }
  if (!read.allocation) return FailedPrecondition("the claim is not allocated");
  DriverAllocation out;
  TAHOMA_RETURN_IF_ERROR(ReadResults(*read.allocation, out));
  TAHOMA_RETURN_IF_ERROR(CheckLength("config", read.allocation->configs.size(), kMaxConfigs));
  TAHOMA_RETURN_IF_ERROR(ReadConfigs(*read.allocation, kube::ConfigSource::kClass, out));
  TAHOMA_RETURN_IF_ERROR(ReadConfigs(*read.allocation, kube::ConfigSource::kClaim, out));
  if (out.devices.empty()) {
    return InvalidArgument("the allocation has no device of driver {}", kDriverName);
  }
  return out;
}

absl::StatusOr<wire::ClaimGrant> BuildGrant(const ClaimRef& claim,
                                            const DriverAllocation& allocation,
                                            const wire::Inventory& inventory) {
  const hw::InstanceType* type = hw::FindInstanceType(inventory.instance_type);
  if (type == nullptr) {
    return InvalidArgument("node {}: instance type \"{}\" is unknown", inventory.node_name,
                           inventory.instance_type);
  }
  std::optional<int> lnc;
  std::optional<int> mode;
  Holdings holdings;
  bool whole_node = false;
  for (const AllocatedDevice& device : allocation.devices) {
    if (device.pool != inventory.node_name) {
      return InvalidArgument("{} is in pool \"{}\"; this node's pool is \"{}\"",
                             hw::ToString(device.device), device.pool, inventory.node_name);
    }
    TAHOMA_ASSIGN_OR_RETURN(const DeviceSettings settings, SettingsOf(allocation, device));
    TAHOMA_RETURN_IF_ERROR(CheckLnc(*type, device, settings));
    TAHOMA_RETURN_IF_ERROR(Agree(lnc, settings.lnc, "LNC"));
    TAHOMA_RETURN_IF_ERROR(Agree(mode, settings.ultra_server_mode, "ultraserverMode"));
    TAHOMA_RETURN_IF_ERROR(holdings.Add(device.device, inventory));
    whole_node = whole_node || device.device.kind == DeviceKind::kNode;
  }
  if (mode.has_value()) TAHOMA_RETURN_IF_ERROR(CheckUltraServer(inventory, *mode));
  if (!mode.has_value() && whole_node) mode = WidestMode(*inventory.ultra_server);
  wire::ClaimGrant grant = {.claim_uid = claim.uid,
                            .name_space = claim.name_space,
                            .name = claim.name,
                            .lnc = lnc.value_or(type->chip->lnc_default),
                            .ultra_server_mode = mode.value_or(0)};
  holdings.Fill(grant.lnc, grant);
  return grant;
}

}  // namespace tahoma::dra

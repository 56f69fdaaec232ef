#include "dra-plugin/claims/allocation.h"

#include <algorithm>
#include <map>
#include <optional>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/hw/device_config.h"
#include "lib/wire/fields.h"

namespace tahoma::dra {
namespace {

using hw::DeviceKind;
using json = Json;
using wire::Fields;

constexpr std::size_t kMaxResults = 32;   // resource/v1: AllocationResultsMaxSize
constexpr std::size_t kMaxConfigs = 64;   // resource/v1: 2 * DeviceConfigMaxSize
constexpr std::size_t kMaxRequests = 32;  // resource/v1: DeviceRequestsMaxSize
constexpr std::size_t kMaxName = 253;

absl::Status ReadResults(const json& devices, Allocation& out) {
  Fields fields(devices, "status.allocation.devices");
  for (const json& element : fields.Array("results", kMaxResults)) {
    Fields result(element, fields.Path("results[]"));
    const std::string driver = result.String("driver", 1, kMaxName);
    if (!result.status().ok() || driver != kDriverName) {
      fields.Fail(result.status());
      continue;
    }
    AllocatedDevice device = {.request = result.String("request", 1, kMaxName),
                              .pool = result.String("pool", 1, kMaxName)};
    const std::string name = result.String("device", 1, kMaxName);
    const bool admin = result.BoolOr("adminAccess", false);
    fields.Fail(result.status());
    TAHOMA_RETURN_IF_ERROR(fields.status());
    if (admin) {
      return InvalidArgument("request \"{}\" has admin access, which this driver does not offer",
                             device.request);
    }
    TAHOMA_ASSIGN_OR_RETURN(device.device, hw::ParseDeviceName(name));
    out.devices.push_back(std::move(device));
  }
  return fields.status();
}

absl::Status ReadConfigs(const json& devices, std::string_view source, Allocation& out) {
  Fields fields(devices, "status.allocation.devices");
  for (const json& element : fields.Array("config", kMaxConfigs)) {
    Fields config(element, fields.Path("config[]"));
    const std::string from = config.String("source", 1, 16);
    const json* opaque = config.Object("opaque");
    if (!config.status().ok() || opaque == nullptr || from != source) {
      fields.Fail(config.status());
      continue;
    }
    Fields opaque_fields(*opaque, config.Path("opaque"));
    if (opaque_fields.String("driver", 1, kMaxName) != kDriverName) continue;
    OpaqueConfig read;
    for (const json& request : config.Array("requests", kMaxRequests)) {
      if (request.is_string()) read.requests.push_back(request.get<std::string>());
    }
    const json* parameters = opaque_fields.Object("parameters");
    read.parameters = parameters == nullptr ? "{}" : parameters->dump();
    fields.Fail(opaque_fields.status());
    out.configs.push_back(std::move(read));
  }
  return fields.status();
}

bool Applies(const OpaqueConfig& config, const AllocatedDevice& device) {
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

absl::StatusOr<DeviceSettings> SettingsOf(const Allocation& allocation,
                                          const AllocatedDevice& device) {
  DeviceSettings settings;
  for (const OpaqueConfig& config : allocation.configs) {
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

absl::StatusOr<Allocation> ReadAllocation(std::string_view claim_json, const ClaimRef& claim) {
  TAHOMA_ASSIGN_OR_RETURN(const json object, wire::ParseJson(claim_json, "the ResourceClaim"));
  Fields fields(object, "ResourceClaim");
  const json* metadata = fields.Object("metadata");
  const json* status = fields.Object("status");
  TAHOMA_RETURN_IF_ERROR(fields.status());
  if (metadata == nullptr) return InvalidArgument("the ResourceClaim has no metadata");
  Fields metadata_fields(*metadata, "metadata");
  const std::string uid = metadata_fields.String("uid", 1, 64);
  TAHOMA_RETURN_IF_ERROR(metadata_fields.status());
  if (uid != claim.uid) {
    return FailedPrecondition("the claim of that name has uid {}; expected {}, which was deleted",
                              uid, claim.uid);
  }
  const json* allocation = nullptr;
  if (status != nullptr) {
    Fields status_fields(*status, "status");
    allocation = status_fields.Object("allocation");
    TAHOMA_RETURN_IF_ERROR(status_fields.status());
  }
  if (allocation == nullptr) return FailedPrecondition("the claim is not allocated");
  Fields allocation_fields(*allocation, "status.allocation");
  const json* devices = allocation_fields.Object("devices");
  TAHOMA_RETURN_IF_ERROR(allocation_fields.status());
  Allocation out;
  if (devices != nullptr) {
    TAHOMA_RETURN_IF_ERROR(ReadResults(*devices, out));
    TAHOMA_RETURN_IF_ERROR(ReadConfigs(*devices, "FromClass", out));
    TAHOMA_RETURN_IF_ERROR(ReadConfigs(*devices, "FromClaim", out));
  }
  if (out.devices.empty()) {
    return InvalidArgument("the allocation has no device of driver {}", kDriverName);
  }
  return out;
}

absl::StatusOr<wire::ClaimGrant> BuildGrant(const ClaimRef& claim, const Allocation& allocation,
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

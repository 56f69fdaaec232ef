#include "dra-plugin/claims/allocation.h"

#include <algorithm>
#include <map>
#include <optional>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/driver/block_config.h"
#include "lib/driver/device_config.h"
#include "lib/kube/name.h"
#include "lib/kube/object.h"
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

std::string InRequest(const std::string& request) { return fmt::format("request \"{}\"", request); }

bool IsName(std::string_view text) { return !text.empty() && text.size() <= kMaxName; }

absl::Status CheckLength(std::string_view list, std::size_t length, std::size_t most) {
  if (length <= most) return absl::OkStatus();
  return InvalidArgument("status.allocation.devices.{} has {} elements; expected at most {}", list,
                         length, most);
}

absl::StatusOr<std::vector<kube::DeviceResult>> ResultsOf(const kube::Allocation& allocation,
                                                          std::string_view driver) {
  TAHOMA_RETURN_IF_ERROR(CheckLength("results", allocation.results.size(), kMaxResults));
  std::vector<kube::DeviceResult> out;
  for (const kube::DeviceResult& result : allocation.results) {
    if (!IsName(result.driver)) return InvalidArgument("a result names no driver");
    if (result.driver != driver) continue;
    if (!IsName(result.request) || !IsName(result.pool) || !IsName(result.device)) {
      return InvalidArgument(
          "request \"{}\", pool \"{}\" and device \"{}\" of a result must have 1 to {} bytes each",
          CutUtf8(result.request, kMaxName), CutUtf8(result.pool, kMaxName),
          CutUtf8(result.device, kMaxName), kMaxName);
    }
    if (result.admin_access) {
      return InvalidArgument("request \"{}\" has admin access, which this driver does not offer",
                             result.request);
    }
    out.push_back(result);
  }
  if (out.empty()) return InvalidArgument("the allocation has no device of driver {}", driver);
  return out;
}

// The allocation of the claim, which may have been replaced by another of its name.
absl::StatusOr<kube::Allocation> AllocationOf(const json& object, const ClaimRef& claim) {
  TAHOMA_ASSIGN_OR_RETURN(kube::ResourceClaim read, kube::ParseResourceClaim(object));
  if (read.metadata.uid != claim.uid) {
    return FailedPrecondition("the claim of that name has uid {}; expected {}, which was deleted",
                              CutUtf8(read.metadata.uid, kMaxName), claim.uid);
  }
  if (!read.allocation) return FailedPrecondition("the claim is not allocated");
  return *std::move(read.allocation);
}

std::string Quoted(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    out += fmt::format("{}\"{}\"", out.empty() ? "" : ", ", CutUtf8(name, kMaxName));
  }
  return out;
}

// For messages: "the claim's configuration for request "r"".
std::string Describe(const kube::DeviceConfig& config) {
  return fmt::format("the {}'s configuration for {}",
                     config.source == kube::ConfigSource::kClass ? "class" : "claim",
                     config.requests.empty()       ? "all requests"
                     : config.requests.size() == 1 ? "request " + Quoted(config.requests)
                                                   : "requests " + Quoted(config.requests));
}

// The names of a claim's requests and of their subrequests, "r" and "r/sub".
std::vector<std::string> RequestsOf(const json& claim) {
  std::vector<std::string> names;
  for (const json& request : kube::ListAt(claim, {"spec", "devices", "requests"})) {
    const std::string name(kube::StringAt(request, {"name"}));
    names.push_back(name);
    for (const json& one : kube::ListAt(request, {"firstAvailable"})) {
      names.push_back(fmt::format("{}/{}", name, kube::StringAt(one, {"name"})));
    }
  }
  return names;
}

// Refuses misspelt requests, whose configuration would silently be ignored. An API server checks
// requests, too, but any scheduler may have written this allocation.
absl::Status CheckRequests(const kube::DeviceConfig& config,
                           const std::vector<std::string>& requests) {
  if (requests.empty()) return absl::OkStatus();  // the claim shows no requests
  for (const std::string& name : config.requests) {
    if (std::find(requests.begin(), requests.end(), name) != requests.end()) continue;
    return InvalidArgument("{}: the claim has no request \"{}\"; its requests are {}",
                           Describe(config), CutUtf8(name, kMaxName), Quoted(requests));
  }
  return absl::OkStatus();
}

absl::Status ReadConfigs(const kube::Allocation& allocation, kube::ConfigSource source,
                         const std::vector<std::string>& requests, DriverAllocation& out) {
  for (const kube::DeviceConfig& config : allocation.configs) {
    if (config.source != source) continue;
    if (config.driver == hw::kBlockConfigDriver) {
      const auto block = hw::ParseBlockConfig(config.parameters);
      if (!block.ok()) return Annotate(block.status(), Describe(config));
      out.reclaim_timestamp = block->reclaim_timestamp;
    }
    if (config.driver != kDriverName) continue;
    TAHOMA_RETURN_IF_ERROR(CheckLength("config[].requests", config.requests.size(), kMaxRequests));
    TAHOMA_RETURN_IF_ERROR(CheckRequests(config, requests));
    kube::DeviceConfig& added = out.configs.emplace_back(config);
    if (added.parameters == "null") added.parameters = "{}";
    if (!added.parameters.starts_with('{')) {
      return InvalidArgument("{}: its parameters are {}; they must be an object", Describe(config),
                             CutUtf8(added.parameters, 64));
    }
  }
  return absl::OkStatus();
}

// A configuration of the allocation, read.
struct Config {
  const kube::DeviceConfig* from = nullptr;
  hw::DeviceConfig value = {};
};

absl::StatusOr<std::vector<Config>> ParseConfigs(const DriverAllocation& allocation) {
  std::vector<Config> out;
  for (const kube::DeviceConfig& config : allocation.configs) {
    absl::StatusOr<hw::DeviceConfig> parsed = hw::ParseDeviceConfig(config.parameters);
    if (!parsed.ok()) return Annotate(parsed.status(), Describe(config));
    out.push_back({.from = &config, .value = *std::move(parsed)});
  }
  return out;
}

// How closely a configuration names a device's request.
enum class Scope { kOther, kAllRequests, kRequest, kSubrequest };

Scope ScopeOf(const kube::DeviceConfig& config, const AllocatedDevice& device) {
  if (config.requests.empty()) return Scope::kAllRequests;
  Scope scope = Scope::kOther;
  for (const std::string& name : config.requests) {
    if (name == device.request) {
      return name == BaseRequest(name) ? Scope::kRequest : Scope::kSubrequest;
    }
    if (name == BaseRequest(device.request)) scope = Scope::kRequest;
  }
  return scope;
}

// A value of a device, and the configuration that set the value.
struct Setting {
  std::optional<int> value = {};
  kube::ConfigSource source = kube::ConfigSource::kClass;
  Scope scope = Scope::kOther;

  // A later entry replaces an earlier entry. Two values from the same source for the same requests
  // are ambiguous and refused.
  absl::Status Set(int now, const kube::DeviceConfig& config, Scope now_scope,
                   std::string_view field) {
    if (value.has_value() && *value != now && source == config.source && scope == now_scope) {
      return InvalidArgument(
          "{} says {} {}, and another one for the same says {}; keep one of them", Describe(config),
          field, now, *value);
    }
    value = now;
    source = config.source;
    scope = now_scope;
    return absl::OkStatus();
  }
};

// The configuration of a device, after later entries have replaced earlier entries.
struct DeviceSettings {
  Setting lnc = {};
  Setting ultra_server_mode = {};
};

absl::StatusOr<DeviceSettings> SettingsOf(const std::vector<Config>& configs,
                                          const AllocatedDevice& device) {
  DeviceSettings settings;
  for (const Config& config : configs) {
    const Scope scope = ScopeOf(*config.from, device);
    if (scope == Scope::kOther) continue;
    if (const auto* neuron = std::get_if<hw::NeuronConfig>(&config.value)) {
      TAHOMA_RETURN_IF_ERROR(
          settings.lnc.Set(neuron->logical_neuron_core, *config.from, scope, "logicalNeuronCore"));
    } else {
      TAHOMA_RETURN_IF_ERROR(settings.ultra_server_mode.Set(
          std::get<hw::UltraServerConfig>(config.value).ultraserver_mode, *config.from, scope,
          "ultraserverMode"));
    }
  }
  if (device.device.kind != DeviceKind::kCore) return settings;
  if (settings.lnc.value.value_or(device.device.lnc) != device.device.lnc) {
    return InvalidArgument(
        "{} is a partition for LNC {}, but its NeuronConfig says logicalNeuronCore {}; it must be "
        "{}, or left out",
        hw::ToString(device.device), device.device.lnc, *settings.lnc.value, device.device.lnc);
  }
  settings.lnc.value = device.device.lnc;
  return settings;
}

// Chips with cores that cannot be joined take no NeuronConfig, as AWS's driver says
// (docs/reference/aws-dra-driver.md#configurations).
absl::Status CheckLnc(const hw::InstanceType& type, const AllocatedDevice& device,
                      const DeviceSettings& settings) {
  const bool configured = settings.lnc.value.has_value() && device.device.kind != DeviceKind::kCore;
  if (configured && type.chip->lnc_max == 1) {
    return InvalidArgument("NeuronConfig: dynamic LNC not supported on {}; leave it out",
                           type.name);
  }
  return absl::OkStatus();
}

// One value for the whole claim, because all containers of a claim share an environment.
class ClaimValue {
 public:
  explicit ClaimValue(std::string_view field) : field_(field) {}

  absl::Status Adopt(const std::optional<int>& of_device, const std::string& request) {
    if (!of_device.has_value()) return absl::OkStatus();
    if (value_.has_value() && *value_ != *of_device) {
      return InvalidArgument(
          "{} is {} here and {} for request \"{}\"; a claim has one: use a claim for each", field_,
          *of_device, *value_, request_);
    }
    if (!value_.has_value()) request_ = request;
    value_ = of_device;
    return absl::OkStatus();
  }

  const std::optional<int>& value() const { return value_; }
  const std::string& request() const { return request_; }  // the first request with a value

 private:
  const std::string_view field_;
  std::optional<int> value_;
  std::string request_;
};

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

// Collects the held devices, and refuses a device named twice.
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
        "nodes; it must be {}",
        mode, inventory.node_name, ultra_server.id, ultra_server.mode,
        ultra_server.mode == 1 ? "1" : "1 or 2");
  }
  return absl::OkStatus();
}

// Returns the mode of a whole-node claim without a mode; 0 while no mode is elected.
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

// Names become parts of a request's path: "" would ask for all claims, and ".." for something else.
absl::Status CheckNames(const ClaimRef& claim) {
  if (const auto wrong = kube::WrongDns1123Label(claim.name_space)) {
    return InvalidArgument("its namespace is no name: {}", *wrong);
  }
  if (const auto wrong = kube::WrongDns1123Subdomain(claim.name)) {
    return InvalidArgument("its name is none: {}", *wrong);
  }
  if (claim.uid.empty()) return InvalidArgument("the kubelet gave no uid for it");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<kube::DeviceResult>> ReadResults(std::string_view claim_json,
                                                            const ClaimRef& claim,
                                                            std::string_view driver) {
  TAHOMA_ASSIGN_OR_RETURN(const json object, wire::ReadJson(claim_json, "the ResourceClaim"));
  TAHOMA_ASSIGN_OR_RETURN(const kube::Allocation allocation, AllocationOf(object, claim));
  return ResultsOf(allocation, driver);
}

absl::StatusOr<DriverAllocation> ReadAllocation(std::string_view claim_json,
                                                const ClaimRef& claim) {
  TAHOMA_ASSIGN_OR_RETURN(const json object, wire::ReadJson(claim_json, "the ResourceClaim"));
  TAHOMA_ASSIGN_OR_RETURN(const kube::Allocation allocation, AllocationOf(object, claim));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<kube::DeviceResult> results,
                          ResultsOf(allocation, kDriverName));
  DriverAllocation out;
  for (const kube::DeviceResult& result : results) {
    const auto device = hw::ParseDeviceName(result.device);
    if (!device.ok()) return Annotate(device.status(), InRequest(result.request));
    out.devices.push_back({.request = result.request, .pool = result.pool, .device = *device});
  }
  TAHOMA_RETURN_IF_ERROR(CheckLength("config", allocation.configs.size(), kMaxConfigs));
  const std::vector<std::string> requests = RequestsOf(object);
  for (const auto source : {kube::ConfigSource::kClass, kube::ConfigSource::kClaim}) {
    TAHOMA_RETURN_IF_ERROR(ReadConfigs(allocation, source, requests, out));
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
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<Config> configs, ParseConfigs(allocation));
  ClaimValue lnc("logicalNeuronCore");
  ClaimValue mode("ultraserverMode");
  Holdings holdings;
  bool whole_node = false;
  const auto add = [&](const AllocatedDevice& device) -> absl::Status {
    if (device.pool != inventory.node_name) {
      return InvalidArgument("{} is in pool \"{}\"; this node's pool is \"{}\"",
                             hw::ToString(device.device), device.pool, inventory.node_name);
    }
    TAHOMA_ASSIGN_OR_RETURN(const DeviceSettings settings, SettingsOf(configs, device));
    TAHOMA_RETURN_IF_ERROR(CheckLnc(*type, device, settings));
    TAHOMA_RETURN_IF_ERROR(lnc.Adopt(settings.lnc.value, device.request));
    TAHOMA_RETURN_IF_ERROR(mode.Adopt(settings.ultra_server_mode.value, device.request));
    whole_node = whole_node || device.device.kind == DeviceKind::kNode;
    return holdings.Add(device.device, inventory);
  };
  for (const AllocatedDevice& device : allocation.devices) {
    TAHOMA_RETURN_IF_ERROR(Annotate(add(device), InRequest(device.request)));
  }
  if (mode.value().has_value()) {
    TAHOMA_RETURN_IF_ERROR(
        Annotate(CheckUltraServer(inventory, *mode.value()), InRequest(mode.request())));
  }
  const int nodes = mode.value().has_value() ? *mode.value()
                    : whole_node             ? WidestMode(*inventory.ultra_server)
                                             : 0;
  wire::ClaimGrant grant = {.claim_uid = claim.uid,
                            .name_space = claim.name_space,
                            .name = claim.name,
                            .lnc = lnc.value().value_or(type->chip->lnc_default),
                            .ultra_server_mode = nodes};
  holdings.Fill(grant.lnc, grant);
  return grant;
}

}  // namespace tahoma::dra

// The requests of pods and what they were given: resource.k8s.io/v1 without JSON.
//
//   ClaimSpec claim{.key = {"default", "pod0-neurons"}, .uid = "…"};
//   claim.requests.push_back({.name = "neurons",
//                             .alternatives = {{.selectors = {selector}, .count = 4}}});
//
// Selectors are CEL source; the planner compiles each distinct one once. Whoever fills a ClaimSpec
// resolves the DeviceClass: its selectors and configs are copied in, since they apply at the time
// of allocation (docs/reference/kubernetes-dra.md#classes).
//
// Thread safety: values.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/model/device.h"
#include "controller/model/ids.h"

namespace tahoma::controller {

enum class AllocationMode : std::uint8_t { kExactCount, kAll };

// `exactly`, or one entry of `firstAvailable`.
struct DeviceRequest {
  std::string name;  // of the subrequest; empty for `exactly`
  std::string device_class;
  bool class_found = true;                   // whether a DeviceClass of that name exists
  std::vector<std::string> class_selectors;  // CEL
  std::vector<std::string> selectors;        // CEL
  AllocationMode mode = AllocationMode::kExactCount;
  std::int64_t count = 1;
  bool admin_access = false;
  std::vector<Toleration> tolerations;
  bool has_capacity_requests = false;  // consumable capacity, which our devices do not offer
};

struct ClaimRequest {
  std::string name;
  std::vector<DeviceRequest> alternatives;  // one for `exactly`, 1..8 for `firstAvailable`
  bool first_available = false;
};

struct Constraint {
  std::vector<std::string> requests;  // "r" or "r/sub"; empty: all
  std::string attribute;              // fully qualified
  bool distinct = false;              // distinctAttribute instead of matchAttribute
};

enum class ConfigSource : std::uint8_t { kClass, kClaim };

// An opaque configuration. `parameters` is the JSON text as given.
struct DeviceConfig {
  ConfigSource source = ConfigSource::kClaim;
  std::vector<std::string> requests;  // empty: all; for kClass the request that used the class
  std::string driver;
  std::string parameters;

  friend bool operator==(const DeviceConfig&, const DeviceConfig&) = default;
};

struct ClaimSpec {
  ClaimKey key;
  std::string uid;
  std::vector<ClaimRequest> requests;
  std::vector<Constraint> constraints;
  std::vector<DeviceConfig> configs;  // class configs first, as in status.allocation
  // Set when the claim is allocated already: the node that its pods must run on ("" when any).
  std::optional<std::string> allocated_node;
};

// status.allocation.devices.results[i].
struct DeviceResult {
  std::string request;  // "r" or "r/sub"
  std::string driver;
  std::string pool;
  std::string device;
  bool admin_access = false;
  std::vector<Toleration> tolerations;

  friend bool operator==(const DeviceResult&, const DeviceResult&) = default;
};

// status.allocation, complete. `node` is written as the nodeSelector term
// matchFields metadata.name In [node] (docs/reference/kubernetes-dra.md#allocation).
struct Allocation {
  std::vector<DeviceResult> results;
  std::vector<DeviceConfig> configs;
  std::string node;

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

}  // namespace tahoma::controller

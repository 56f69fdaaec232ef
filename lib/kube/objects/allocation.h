// The devices that a ResourceClaim was given: status.allocation of resource.k8s.io/v1.
//
//   const Allocation allocation = ParseAllocation(status.At("allocation"));
//   patch["status"]["allocation"] = RenderAllocation(allocation);
//
// Scope: the fields that our programs write. An allocation of another scheduler may have more,
// which is not kept.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/field.h"
#include "lib/kube/objects/taint.h"

namespace tahoma::kube {

enum class ConfigSource : std::uint8_t { kClass, kClaim };

// An opaque configuration. `parameters` is its JSON text, "null" when it has none.
struct DeviceConfig {
  ConfigSource source = ConfigSource::kClaim;
  std::vector<std::string> requests;  // empty: all; for kClass the request that used the class
  std::string driver;
  std::string parameters;

  friend bool operator==(const DeviceConfig&, const DeviceConfig&) = default;
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

// `node` is written as the nodeSelector term matchFields metadata.name In [node]
// (docs/reference/kubernetes-dra.md#allocation).
struct Allocation {
  std::vector<DeviceResult> results;
  std::vector<DeviceConfig> configs;
  std::string node;

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

Allocation ParseAllocation(Field field);
Json RenderAllocation(const Allocation& allocation);

// The `config` lists of claims, classes and allocations; only those of an allocation say their
// source themselves, the others are of `source`.
std::vector<DeviceConfig> ParseConfigs(Field list, ConfigSource source);

}  // namespace tahoma::kube

// The devices that a ResourceClaim was given: status.allocation of resource.k8s.io/v1.
//
//   const Allocation allocation = ParseAllocation(status.At("allocation"));
//   patch["status"]["allocation"] = RenderAllocation(allocation);
//
// Scope: the fields that schedulers decide. The time of an allocation is not kept.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/field.h"
#include "lib/kube/objects/node_selector.h"
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

// An amount that an allocation takes of a capacity of a shared device.
struct ConsumedCapacity {
  std::string name;  // "id" for the driver's own, or "domain/id"
  std::string quantity;

  friend bool operator==(const ConsumedCapacity&, const ConsumedCapacity&) = default;
};

// Details of a result, which most results do not have.
struct ResultDetails {
  std::size_t result = 0;  // the place of the result in Allocation::results
  std::string share_id;    // of a share of a device, a UUID; empty: the whole device
  std::vector<ConsumedCapacity> consumed;  // by name
  // Conditions of the device that a pod's binding waits for, or that undo the allocation.
  std::vector<std::string> binding_conditions;
  std::vector<std::string> binding_failure_conditions;

  friend bool operator==(const ResultDetails&, const ResultDetails&) = default;
};

// `node` is written as the nodeSelector term matchFields metadata.name In [node]
// (docs/reference/kubernetes-dra.md#allocation).
struct Allocation {
  std::vector<DeviceResult> results;
  std::vector<DeviceConfig> configs;
  std::string node;
  std::vector<ResultDetails> details = {};  // ascending by result
  NodeTerms node_terms = {};                // of devices of several nodes; then `node` is empty

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

Allocation ParseAllocation(Field field);
Json RenderAllocation(const Allocation& allocation);

// The `config` lists of claims, classes and allocations; only those of an allocation say their
// source themselves, the others are of `source`.
std::vector<DeviceConfig> ParseConfigs(Field list, ConfigSource source);

}  // namespace tahoma::kube

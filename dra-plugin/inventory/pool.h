// The devices that a node publishes, made from sim-node's inventory.
//
//   absl::StatusOr<DevicePool> pool = BuildPool(inventory, {.publish = {.lnc1 = false}});
//   for (const SliceContent& slice : CutIntoSlices(*pool)) …
//
// docs/design/0001-seams.md defines names, attributes, counters and taints. AWS's attributes have
// AWS's names and types, so AWS's manifests select our devices unchanged.
//
// Scope: a pure function. dra-plugin/slices writes the ResourceSlices.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/version.h"
#include "lib/kube/objects/slice.h"
#include "lib/wire/messages.h"

namespace tahoma::dra {

inline constexpr std::string_view kDriver = "neuron.aws.com";
inline constexpr std::string_view kManagedTaint = "tahoma.dev/managed";
inline constexpr std::string_view kUnhealthyTaint = "tahoma.dev/unhealthy";

// resource.k8s.io/v1 since 1.35: at most 64 devices in a ResourceSlice when any device has a taint
// or consumes counters; all our devices have a taint. Earlier servers allow 128.
inline constexpr std::size_t kMaxDevicesPerSlice = 64;
inline constexpr std::size_t kMaxDevicesPerSliceBefore135 = 128;
inline constexpr std::size_t kMaxCounterSetsPerSlice = 8;
inline constexpr std::size_t kMaxCountersPerSet = 32;

using kube::Attribute;
using kube::AttributeValue;
using kube::Counter;
using kube::CounterSet;
using kube::Taint;
using kube::TaintEffect;
using kube::Version;

// A device, and its part of the counters that the devices of the pool share.
struct Device : kube::Device {
  std::vector<CounterSet> consumes = {};

  bool operator==(const Device& other) const {
    return name == other.name && attributes == other.attributes && taints == other.taints &&
           consumes == other.consumes;
  }
};

// The kinds of devices that a node publishes. In a large fleet every byte of a ResourceSlice costs
// etcd, so each node pool chooses.
struct Publish {
  bool chips = true;
  bool lnc1 = true;
  bool lnc2 = true;
  bool node = true;  // neuron-node, on members of an UltraServer only
  bool operator==(const Publish&) const = default;
};

// Parses the configuration's list of "chips", "lnc1", "lnc2", "node". kInvalidArgument for another
// word, a word twice, or an empty list.
absl::StatusOr<Publish> ParsePublish(const std::vector<std::string>& words);

// Maps the reason of an unhealthy device to the effect of its taint. A reason is sim-node's name of
// a chip's fault, or "node-lost", or "link-down" for a working chip with a broken link, or
// "efa-down" for a NIC. An unnamed reason has NoExecute; "link-down" has no taint, because a pod
// that needs no such link may run there; a NIC's taint has NoSchedule.
using FaultEffects = std::map<std::string, TaintEffect>;

// Parses the configuration's map of reasons to "NoSchedule" or "NoExecute". kInvalidArgument for
// other words.
absl::StatusOr<FaultEffects> ParseFaultEffects(const std::map<std::string, std::string>& words);

struct PoolOptions {
  Publish publish = {};
  FaultEffects fault_effects = {};
  // Whether devices have the taint kManagedTaint. The taint keeps kube-scheduler away:
  // kube-scheduler and the controller must not both give a device away.
  bool managed_taint = true;
  std::string driver_version = std::string(kVersion);  // attribute draDriverVersion
  bool node_lost = false;  // sim-node is gone: every device is unhealthy
};

// Returns why the device must not be used, from its taint; empty for a good device.
std::string_view UnhealthyReason(const Device& device);

struct DevicePool {
  std::vector<CounterSet> counter_sets = {};  // empty when nothing shares counters
  // Counters and devices share a ResourceSlice, as before Kubernetes 1.35.
  bool together = false;
  std::vector<std::vector<Device>> groups;  // chips and node; LNC 2 cores; LNC 1 cores. By id
  bool operator==(const DevicePool&) const = default;
};

// kInvalidArgument when the instance type is unknown or the chips are not exactly the chips of the
// type.
absl::StatusOr<DevicePool> BuildPool(const wire::Inventory& inventory, const PoolOptions& options);

// The content of a ResourceSlice of the pool: either counter sets or devices; both only in a pool
// with `together`.
struct SliceContent {
  std::vector<CounterSet> counter_sets = {};
  std::vector<Device> devices = {};
  bool operator==(const SliceContent&) const = default;
};

// Returns the ResourceSlices in the order of their index. Each group begins a new ResourceSlice, so
// a change touches few slices. An empty pool is an empty ResourceSlice. A pool with `together` must
// fit into a single ResourceSlice.
std::vector<SliceContent> CutIntoSlices(const DevicePool& pool);

}  // namespace tahoma::dra

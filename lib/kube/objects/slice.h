// A ResourceSlice: devices of a pool, as a driver publishes them.
//
//   absl::StatusOr<ResourceSlice> slice = ParseResourceSlice(object);
//   object["spec"] = RenderSliceSpec(*slice);
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/objects/device.h"
#include "lib/kube/objects/device_details.h"
#include "lib/kube/objects/node_selector.h"

namespace tahoma::kube {

struct Counter {
  std::string name;
  // Whole units: a fraction of a shared counter does not count, and a fraction that a device
  // consumes counts as a unit.
  std::int64_t value = 0;

  friend bool operator==(const Counter&, const Counter&) = default;
};

// A set of counters: counters that devices share, or a device's consumption of such counters.
struct CounterSet {
  std::string name;
  std::vector<Counter> counters;

  friend bool operator==(const CounterSet&, const CounterSet&) = default;
};

struct ResourceSlice {
  std::string name;
  std::string driver;
  std::string pool;
  std::string node;  // spec.nodeName; empty for slices of no single node
  std::int64_t generation = 0;
  std::int64_t slices_in_pool = 1;
  std::vector<Device> devices;

  // Not read by SliceDetails::kLeaveOut:
  bool all_nodes = false;
  NodeTerms node_terms = {};      // spec.nodeSelector
  bool per_device_nodes = false;  // each device has nodes of its own
  std::vector<CounterSet> shared_counters = {};
  // An entry for each device, in the devices' order, or empty.
  std::vector<std::vector<CounterSet>> consumes = {};
  std::vector<DeviceDetails> details = {};
};

// Counters fill most of a slice with overlapping devices, and few readers need counters or other
// details.
enum class SliceDetails : std::uint8_t { kLeaveOut, kRead };

// spec.devices may be the list's JSON text, as a binary value (lib/base/json_part.h).
absl::StatusOr<ResourceSlice> ParseResourceSlice(const Json& object,
                                                 SliceDetails details = SliceDetails::kLeaveOut);
Json RenderSliceSpec(const ResourceSlice& slice);

}  // namespace tahoma::kube

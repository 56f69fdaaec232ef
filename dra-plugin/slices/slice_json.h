// A node's slices as resource.k8s.io/v1 objects.
//
// Scope: a slice's identity, and the comparison that finds the fields a server did not keep.

#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "dra-plugin/inventory/pool.h"
#include "lib/base/json_fwd.h"

namespace tahoma::dra {

// The taints of devices, as DroppedFields names the field.
inline constexpr char kTaintsField[] = "spec.devices[].taints";

struct SliceOwner {
  std::string node_name = {};  // also the pool's name
  std::string node_uid = {};
  std::string driver = std::string(kDriver);
};

struct PoolMark {
  std::int64_t generation = 1;
  std::size_t slice_count = 1;
};

// "02-neuron.aws.com-node-a-": the index comes first, because a pool's slices are taken in the
// order of their names and long names are cut at the end.
std::string SliceGenerateName(const SliceOwner& owner, std::size_t index);

// "02-neuron.aws.com-node-a-0", for a publisher that names its slices itself.
std::string SliceName(const SliceOwner& owner, std::size_t index);

// A new object, complete but for the generated name.
Json SliceObject(const SliceOwner& owner, const PoolMark& mark, const SliceContent& content,
                 std::size_t index);

// Returns the fields of `sent` missing in `kept`, with array positions left out
// ("spec.devices[].taints"), each once. Fields of `kept` alone are the server's defaults.
std::set<std::string> DroppedFields(const Json& sent, const Json& kept);

// Whether counters, or the consumption of counters, are among the fields.
bool HasCounters(const std::set<std::string>& fields);

// Takes such fields out of an object.
void RemoveFields(const std::set<std::string>& paths, Json& object);

// Copies timeAdded to every taint of `wanted` that the same device of `existing` already has,
// because an update must not make a taint younger.
void KeepTaintTimes(const Json& existing, Json& wanted);

}  // namespace tahoma::dra

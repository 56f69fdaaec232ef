// The pools of devices that a node can use, from the ResourceSlices of all drivers.
//
// Thread safety: values and pure functions. Pools point into the slices.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "controller/allocate/features.h"
#include "lib/kube/objects/metadata.h"
#include "lib/kube/objects/slice.h"

namespace tahoma::controller::allocate {

struct NodeView {
  const std::string& name;
  const kube::Labels& labels;
};

using Slices = std::span<const kube::ResourceSlice* const>;

enum class PoolState : std::uint8_t {
  kUsable,
  kIncomplete,  // the driver has not published every slice of the newest generation yet
  kInvalid,     // names of devices or counters contradict each other
};

struct Pool {
  std::string_view driver;
  std::string_view name;
  PoolState state = PoolState::kUsable;
  std::string why;                                    // of kInvalid
  std::vector<const kube::ResourceSlice*> devices;    // slices with devices for the node, by name
  std::vector<const kube::ResourceSlice*> elsewhere;  // the pool's other slices
  std::vector<const kube::ResourceSlice*> counter_sets;  // slices of shared counters
};

// Returns the pools with slices for the node, by driver and name; pools with conditions on binding
// come last, so that devices which are ready at once are preferred.
std::vector<Pool> GatherPools(Slices slices, NodeView node, const Features& features);

// Returns whether a slice or device for `name`, all nodes or nodes of these terms is the node's.
bool IsFor(NodeView node, std::string_view name, bool all, const kube::NodeTerms& terms);

}  // namespace tahoma::controller::allocate

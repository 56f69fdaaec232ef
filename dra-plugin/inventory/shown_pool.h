// The devices of a node's pool that an API server can be shown safely: no two overlapping devices
// can be given away together.
//
//   const DevicePool shown = ShownPool(*pool, CounterSupport::kNone);   // chips alone, say
//
// Counters keep overlapping devices apart: each device consumes counters. Kubernetes has moved the
// counters, and drops counters while the gate DRAPartitionableDevices is off, the default before
// 1.36 (docs/reference/kubernetes-dra.md#counters).
//
// Scope: a pure function. dra-plugin/slices finds out the support of a server.

#pragma once

#include <cstdint>

#include "dra-plugin/inventory/pool.h"

namespace tahoma::dra {

enum class CounterSupport : std::uint8_t {
  kApart,     // 1.35 and later: in ResourceSlices of their own, for the whole pool
  kTogether,  // 1.34 and earlier: in the ResourceSlice of the devices, 32 counters at most
  kNone,      // dropped
};

// Returns the pool for a server with `support`. kTogether: one ResourceSlice with chips, the node
// and cores of LNC 2; without chips cores of a single LNC. kNone: chips, or cores of a single LNC,
// or the node. LNC 2 goes before LNC 1, as the runtime's default.
DevicePool ShownPool(const DevicePool& pool, CounterSupport support);

// Returns the kinds of devices in the pool that ShownPool leaves out; never chips.
Publish LeftOut(const DevicePool& pool, CounterSupport support);

// Returns the pool for a server that drops taints: unhealthy devices are left out, because nothing
// else would keep claims away.
DevicePool WithoutUnhealthy(DevicePool pool);

}  // namespace tahoma::dra

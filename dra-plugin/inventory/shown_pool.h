// What of a node's pool an API server can keep without devices that overlap being given away twice.
//
//   const Pool shown = ShownPool(*pool, CounterSupport::kNone);   // chips alone, say
//
// Devices that overlap are kept apart by the counters that they consume. Kubernetes has changed
// where counters are written, and drops them where the gate DRAPartitionableDevices is off, as it
// is by default before 1.36 (docs/reference/kubernetes-dra.md#counters).
//
// Scope: a pure function. Which server has what is found out by dra-plugin/slices.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>

#include "dra-plugin/inventory/pool.h"

namespace tahoma::dra {

enum class CounterSupport : std::uint8_t {
  kApart,     // 1.35 and later: in ResourceSlices of their own, for the whole pool
  kTogether,  // 1.34 and earlier: in the ResourceSlice of the devices, 32 counters at most
  kNone,      // they are dropped
};

// Returns the pool as it is shown where counters are so. kTogether: one ResourceSlice with chips,
// the node and cores of LNC 2; without chips cores of one LNC. kNone: chips, or cores of one LNC,
// or the node. LNC 2 goes before LNC 1, as the runtime's default.
Pool ShownPool(const Pool& pool, CounterSupport support);

// Returns the kinds of devices that the pool has and ShownPool leaves out there; chips never are.
Publish LeftOut(const Pool& pool, CounterSupport support);

// Returns the pool as it is shown where taints are dropped: what must not be used is left out, for
// nothing else would keep claims from it.
Pool WithoutUnhealthy(Pool pool);

}  // namespace tahoma::dra

// The NICs that a node publishes, as devices of the driver dra.net, made from sim-node's inventory.
//
//   const DevicePool pool = BuildEfaPool(inventory, options);
//
// Attributes have the names, types and values of AWS's driver, so AWS's class
// efa.networking.k8s.aws and constraints over chips and NICs select our devices unchanged
// (docs/reference/aws-dra-driver.md#efa). A NIC that is down has the taint kUnhealthyTaint with the
// reason efa-down; the effect is NoSchedule unless the options say another.
//
// Scope: a pure function. dra-plugin/slices writes the ResourceSlice.

#pragma once

#include <string_view>

#include "dra-plugin/inventory/pool.h"
#include "lib/wire/messages.h"

namespace tahoma::dra {

inline constexpr std::string_view kEfaDown = "efa-down";

// Returns a pool without devices for an instance type that is unknown, or has no EFA.
DevicePool BuildEfaPool(const wire::Inventory& inventory, const PoolOptions& options);

}  // namespace tahoma::dra

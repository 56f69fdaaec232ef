// The parts of dynamic resource allocation that a cluster's feature gates switch on.
//
// Thread safety: values.

#pragma once

namespace tahoma::controller::allocate {

// All on: the fields of a part that is off are dropped by the API server, so an allocator that
// knows the part never sees them. An off part is for clusters that were downgraded, and for
// comparisons with Kubernetes.
struct Features {
  bool admin_access = true;
  bool binding_conditions = true;   // DRADeviceBindingConditions
  bool consumable_capacity = true;  // shared devices, and distinctAttribute
  bool device_taints = true;
  bool list_attributes = true;
  bool partitionable_devices = true;  // counters, and devices with nodes of their own
  bool prioritized_list = true;       // firstAvailable
};

}  // namespace tahoma::controller::allocate

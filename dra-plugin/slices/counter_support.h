// Finds out how an API server keeps the counters that devices share, and whether it keeps taints.
//
// The version says where counters are written. Whether the server keeps them, its feature gates
// decide, which nobody can read: so a ResourceSlice is created as a dry run, and the answer is
// looked at.
//
// Scope: one or two requests. Nothing is changed.
//
// Thread safety: that of the client.

#pragma once

#include <absl/status/statusor.h>

#include "dra-plugin/inventory/shown_pool.h"
#include "dra-plugin/slices/slice_json.h"
#include "lib/kube/client.h"

namespace tahoma::dra {

struct ServerCounters {
  CounterSupport support = CounterSupport::kApart;
  int minor = 0;  // of the server's version: 36 is Kubernetes 1.36
};

// The server's error, or why it does not answer; kInternal when its version cannot be read.
absl::StatusOr<ServerCounters> FindCounterSupport(kube::Client& api, const SliceOwner& owner);

// Whether the server keeps taints of devices (feature gate DRADeviceTaints). The server's error.
absl::StatusOr<bool> FindTaintSupport(kube::Client& api, const SliceOwner& owner);

}  // namespace tahoma::dra

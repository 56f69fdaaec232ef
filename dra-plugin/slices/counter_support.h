// Finds out how an API server keeps the counters that devices share, and whether the server keeps
// taints.
//
// The version tells where counters are written. Feature gates decide whether the server keeps
// counters, and nobody can read the gates: so a ResourceSlice is created as a dry run, and the
// answer is compared.
//
// Scope: one or two requests. Nothing is changed.
//
// Thread safety: as the client's.

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

// Fails with the server's error, or the reason of a missing answer; kInternal for an unreadable
// version.
absl::StatusOr<ServerCounters> FindCounterSupport(kube::Client& api, const SliceOwner& owner);

// Whether the server keeps taints of devices (feature gate DRADeviceTaints). The server's error.
absl::StatusOr<bool> FindTaintSupport(kube::Client& api, const SliceOwner& owner);

}  // namespace tahoma::dra

// Finds out how an API server keeps the counters that devices share.
//
//   absl::StatusOr<CounterSupport> support = FindCounterSupport(api, owner);
//
// The version says where counters are written. Whether the server keeps them, its feature gates
// decide, which nobody can read: so a ResourceSlice is created as a dry run, and the answer is
// looked at.
//
// Scope: two requests. Nothing is changed.
//
// Thread safety: that of the client.

#pragma once

#include <absl/status/statusor.h>

#include "dra-plugin/inventory/shown_pool.h"
#include "dra-plugin/slices/slice_json.h"
#include "lib/kube/client.h"

namespace tahoma::dra {

// The server's error, or why it does not answer; kInternal when its version cannot be read.
absl::StatusOr<CounterSupport> FindCounterSupport(kube::Client& api, const SliceOwner& owner);

}  // namespace tahoma::dra

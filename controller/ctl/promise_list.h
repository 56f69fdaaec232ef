// The promises as the controller's admin API tells them: `kubectl tahoma plan`.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Json plan, ReadPromises(admin, ""));   // of all namespaces
//   fmt::print("{}", PlanText(plan));
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "lib/base/json_fwd.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

// Reads those of one namespace, or of all when `ns` is empty.
absl::StatusOr<Json> ReadPromises(kube::Transport& admin, const std::string& ns);

// Makes a table in the order of service, and says how many gangs wait without a promise.
std::string PlanText(const Json& plan);

// Returns the start of a promise as the admin API shows one: a time, or "as it frees", or "others
// end".
std::string StartOf(const Json& promise);

}  // namespace tahoma::controller

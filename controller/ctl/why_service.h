// The part of `kubectl tahoma why` that only the controller's admin API knows: the share of the
// gang's queue, the gang's place in the order of service, promises.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Json service, ReadService(admin, "default", "train"));
//   fmt::print("{}", ServiceText(service));
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "lib/base/json_fwd.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

// Reads GET /v1/why of a gang or pod. kNotFound where the controller knows none of that name.
absl::StatusOr<Json> ReadService(kube::Transport& admin, const std::string& ns,
                                 const std::string& name);

// Returns indented lines; empty where there is nothing to say.
std::string ServiceText(const Json& service);
// Returns the members of the answer that the Gang does not have: order, queues, promise, keptBy.
Json ServiceJson(const Json& service);

}  // namespace tahoma::controller

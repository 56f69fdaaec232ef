// The container of a pod that a request is about, and the address of the pod's node.
//
// Thread safety: from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "controller/apiserver/request/api_context.h"
#include "controller/apiserver/request/api_request.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

// Returns the container that the request names, or the only one, or the default one of the pod's
// annotation. 400 for another, and when there are several to choose from.
absl::StatusOr<std::string> ContainerOf(const ApiRequest& request, const Json& pod);

// Nothing when there is no such node, or the node names no address where a program can listen.
std::optional<NodeEndpoint> EndpointOf(const ApiContext& context, const std::string& node);

}  // namespace tahoma::controller::apiserver

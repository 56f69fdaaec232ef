// The subresources of objects: status, scale, and those of pods and namespaces (binding, eviction,
// log, finalize).
//
// Thread safety: from any thread.

#pragma once

#include <absl/status/statusor.h>

#include "controller/apiserver/request/api_context.h"
#include "controller/apiserver/request/api_request.h"

namespace tahoma::controller::apiserver {

// 404 when the kind has no such subresource, 405 when it has and the method does not fit.
absl::StatusOr<rest::Response> ServeSubresource(const ApiContext& context,
                                                const ApiRequest& request);

}  // namespace tahoma::controller::apiserver

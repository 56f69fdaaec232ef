// Everything below an object that is not the object itself: status, scale, and what pods and
// namespaces have of their own (binding, eviction, log, finalize).
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

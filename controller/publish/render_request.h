// The status of a request about Capacity Blocks as JSON and as a request to the API.
//
// A written status reads back as the same status (core/facts/read_request.h).
//
// Thread safety: pure functions.

#pragma once

#include "controller/core/facts/block_request.h"
#include "controller/core/writes/api_write.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

kube::Request RenderRequestStatus(const RequestStatusWrite& write);

// Returns the status; members without a value are null, so that a merge takes them away.
Json RequestStatusJson(RequestKind kind, const RequestStatus& status);

}  // namespace tahoma::controller

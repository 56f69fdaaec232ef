// Sends a request to the controller's admin API, and reads its problem as a status.
//
// Failures: kInvalidArgument where the request is refused as wrong, kNotFound for 404,
// kPermissionDenied for 401 and 403, kUnavailable else; each with the problem's sentence.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include "lib/base/json_fwd.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

absl::StatusOr<Json> AskAdmin(kube::Transport& admin, const kube::Request& request);

}  // namespace tahoma::controller

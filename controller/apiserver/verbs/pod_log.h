// GET pods/<name>/log, which is fetched from the pod's node, as a kubelet serves it, by:
//
//   GET http://<InternalIP>:<status.daemonEndpoints.kubeletEndpoint.Port>
//       /containerLogs/<namespace>/<pod>/<container>?follow=true&tailLines=10
//
// Source: kubernetes/kubernetes pkg/registry/core/pod/strategy.go (LogLocation).
//
// Thread safety: from any thread.

#pragma once

#include <absl/status/statusor.h>

#include "controller/apiserver/request/api_context.h"
#include "controller/apiserver/request/api_request.h"

namespace tahoma::controller::apiserver {

absl::StatusOr<rest::Response> PodLog(const ApiContext& context, const ApiRequest& request);

}  // namespace tahoma::controller::apiserver

// pods/<name>/exec, attach and portforward: the client's connection leaves HTTP, and its bytes go
// to the pod's node and back, as kube-apiserver passes them to a kubelet:
//
//   GET http://<InternalIP>:<port>/exec/<namespace>/<pod>/<container>?command=ls&stdout=true
//   GET …/attach/<namespace>/<pod>/<container>?stdin=true   GET …/portForward/<namespace>/<pod>
//
// The three by their names.
//
//   if (IsPodConnect(request.subresource)) return ConnectPod(context, request);
//
// Source: kubernetes/kubernetes pkg/registry/core/pod/strategy.go (ExecLocation, AttachLocation,
// PortForwardLocation).
//
// Thread safety: from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <string_view>

#include "controller/apiserver/request/api_context.h"
#include "controller/apiserver/request/api_request.h"

namespace tahoma::controller::apiserver {

// Whether the subresource of pods is one of the three.
bool IsPodConnect(std::string_view subresource);

absl::StatusOr<rest::Response> ConnectPod(const ApiContext& context, const ApiRequest& request);

}  // namespace tahoma::controller::apiserver

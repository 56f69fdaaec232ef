// metrics.k8s.io/v1beta1, for kubectl top: the present use of pods and nodes, from the nodes' pod
// runners, by:
//
//   GET http://<InternalIP>:<port>/stats/containers
//
// Nothing is stored: nodes are asked at each read, 32 at a time. A node that is not ready, or that
// does not answer within two seconds, is left out, as by metrics-server; a list ends within ten
// seconds, whatever the nodes do. Eight reads are served at once. A node's use is the sum of its
// pods' use, because nodes of one machine share the rest.
//
// Thread safety: from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "controller/apiserver/request/api_context.h"
#include "controller/apiserver/request/api_request.h"

namespace tahoma::controller::apiserver {

// Whether the objects of the kind are those of ResourceMetrics.
bool IsResourceMetrics(const Kind& kind);

// Returns the NodeMetrics or PodMetrics that the request's namespace and name select, by name.
// kResourceExhausted for one read too many at once: each may take 64 threads.
absl::StatusOr<std::vector<ObjectPtr>> ResourceMetrics(const ApiContext& context,
                                                       const ApiRequest& request);

}  // namespace tahoma::controller::apiserver

// Reaches the pod runners of nodes over HTTP, for logs.
//
//   ApiServer::Options options{.seed = seed, .node_fetch = HttpNodeFetch()};
//
// A followed log keeps one thread and one connection until its reader or the container ends.
//
// Thread safety: the function may be called from any thread.

#pragma once

#include "controller/apiserver/api_context.h"

namespace tahoma::controller {

// Answers of the node are passed on; a node that does not answer is 500, as with a kubelet.
NodeFetch HttpNodeFetch();

}  // namespace tahoma::controller

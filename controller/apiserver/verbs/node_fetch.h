// Reaches the pod runners of nodes over HTTP, for logs.
//
//   ApiServer::Options options{.seed = seed, .node_fetch = HttpNodeFetch()};
//
// A followed log keeps one thread and one connection until its reader or the container ends.
//
// Thread safety: the function may be called from any thread.

#pragma once

#include <string>

#include "controller/apiserver/request/api_context.h"

namespace tahoma::controller::apiserver {

// Answers of the node are passed on; a node that does not answer is 500, as with a kubelet. The
// token of that file, if one is named, is shown to nodes on loopback only: elsewhere it would cross
// the network in the clear, to whatever address a Node object names.
NodeFetch HttpNodeFetch(std::string token_file = {});

}  // namespace tahoma::controller::apiserver

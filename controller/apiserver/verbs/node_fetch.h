// Reaches the pod runners of nodes over HTTP, for logs.
//
//   ApiServer::Options options{.seed = seed, .node_fetch = HttpNodeFetch("/etc/tahoma/node-logs")};
//
// A log is passed on as it comes, whatever its length: what its reader does not take, the node
// keeps. A log is text, whatever the node says that it is. While its reader and the node are there,
// it has two threads and one connection.
//
// Thread safety: the functions may be called from any thread.

#pragma once

#include <string>
#include <string_view>

#include "controller/apiserver/request/api_context.h"

namespace tahoma::controller::apiserver {

// Returns the token that the log server of that node takes: good there and nowhere else.
std::string NodeLogToken(std::string_view secret, std::string_view node);

// A node's refusal is passed on as a Status; a node that does not answer, or not as a pod runner
// does, is 500, as with a kubelet. The node's token, derived of the secret in that file if one is
// named, is shown to nodes on loopback only: elsewhere it would cross the network in the clear.
NodeFetch HttpNodeFetch(std::string secret_file = {});

}  // namespace tahoma::controller::apiserver

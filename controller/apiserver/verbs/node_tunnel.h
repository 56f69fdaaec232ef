// Connections of clients that have left HTTP, joined to the pod runners of nodes.
//
//   ApiServer::Options options{.node_tunnel = HttpNodeTunnel("/etc/tahoma/node-logs")};
//
// The node shakes hands with the client: the client's WebSocket headers go to the node with the
// node's own token in the place of the client's, and the node's 101 comes back. Then bytes pass in
// both directions as they come, 64 KiB of each at most under way; a side that reads slowly slows
// the other. The end of either side ends both. A tunnel takes a thread and two connections.
//
// Thread safety: the functions may be called from any thread.

#pragma once

#include <string>

#include "controller/apiserver/request/api_context.h"

namespace tahoma::controller::apiserver {

// Refusals of nodes, nodes out of reach and tokens are as with HttpNodeFetch. A client that asks
// for SPDY is told what is served, once the node has found nothing else wrong.
NodeTunnel HttpNodeTunnel(std::string secret_file = {});

}  // namespace tahoma::controller::apiserver

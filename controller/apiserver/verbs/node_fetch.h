// Reaches the pod runners of nodes over HTTP, for logs and for numbers.
//
//   ApiServer::Options options{.seed = seed, .node_fetch = HttpNodeFetch("/etc/tahoma/node-logs")};
//
// A log is passed on as it comes, whatever its length: the node keeps the text that the reader does
// not take. A log is sent as text, whatever type the node names. While reader and node are there, a
// log takes two threads and a connection.
//
// Thread safety: the functions may be called from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "controller/apiserver/request/api_context.h"

namespace tahoma::controller::apiserver {

// Returns the token for the log server of `node`; no other node takes the token.
std::string NodeLogToken(std::string_view secret, std::string_view node);

// Returns the token to show to `node`: empty without a secret file, and where the node is not on
// loopback.
absl::StatusOr<std::string> TokenToShow(const std::string& secret_file, const NodeEndpoint& node);

// Returns the 500 for a node that did not answer, or not as a pod runner.
rest::Response UnreachableNode(std::string_view url, std::string_view why);
// Returns the node's reason for its refusal, in a Status of ours. (k8s.io/apiserver
// pkg/registry/generic/rest GenericHttpResponseChecker.)
rest::Response RefusalOfNode(std::string_view url, int status, const std::string& body);

// Passes a node's refusal on as a Status. A log's head may take 30 seconds, another answer's two. A
// node that does not answer, or not as a pod runner, is 500, as with a kubelet. `secret_file` names
// the secret that node tokens derive from. Only nodes on loopback are shown their token: elsewhere
// it would cross the network in the clear.
NodeFetch HttpNodeFetch(std::string secret_file = {});

}  // namespace tahoma::controller::apiserver

// Joins a node's communicators to its Instance: broken links, claims that end,
// the workloads' calls.
//
//   auto joined = NodeCommunicators::Start(options, live, node_server);
//
// Thread safety: Start before the sockets serve; afterwards it acts on its own.

#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "sim-node/app/options.h"
#include "sim-node/serve/communicator.h"
#include "sim-node/serve/communicator_calls.h"
#include "sim-node/serve/node_server.h"
#include "sim-node/serve/peer_link.h"

namespace tahoma::sim {

class NodeCommunicators {
 public:
  // `live` must outlive it, and it must outlive the servers of `server`. Fails
  // as PeerLink::Start.
  static absl::StatusOr<std::unique_ptr<NodeCommunicators>> Start(const Options& options,
                                                                  LiveInstance& live,
                                                                  NodeServer& server);

  // Ends all calls that wait for other ranks.
  void Close();

 private:
  NodeCommunicators(Communicators::Options options, LiveInstance& live);

  void OnChange();

  LiveInstance& live_;
  Communicators communicators_;
  CommunicatorCalls calls_;
  std::mutex mutex_;                // tokens_
  std::set<std::string> tokens_;    // of claims that have joined something
  std::unique_ptr<PeerLink> link_;  // last: its threads call the others
};

}  // namespace tahoma::sim

// Joins a node's communicators and its UltraServer election to its Instance and to the other nodes:
// broken links, claims that begin and end, the workloads' calls and memory.
//
//   auto joined = NodeCommunicators::Start(options, live, node_server, clock);
//
// Thread safety: Start before the sockets serve; later calls come from threads of its own.

#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/wire/tls.h"
#include "sim-node/serve/communicator.h"
#include "sim-node/serve/communicator_calls.h"
#include "sim-node/serve/memory_calls.h"
#include "sim-node/serve/node_election.h"
#include "sim-node/serve/node_server.h"
#include "sim-node/serve/peer_link.h"
#include "sim-node/serve/program_calls.h"

namespace tahoma::sim {

class NodeCommunicators {
 public:
  struct Options {
    EfaTiming efa_timing{};
    // The links to the other nodes of the UltraServer and to nodes of other domains. Start fills in
    // node_id.
    std::optional<PeerLink::Options> ultra_server{};
    std::optional<PeerLink::Options> efa{};
    std::optional<wire::TlsFiles> tls{};  // of both links
    VirtualDuration election_timeout{};
  };

  // `live` and `clock` must outlive the object, and the object must outlive the servers of
  // `server`. Fails as PeerLink::Start.
  static absl::StatusOr<std::unique_ptr<NodeCommunicators>> Start(const Options& options,
                                                                  LiveInstance& live,
                                                                  NodeServer& server,
                                                                  const Clock& clock);
  ~NodeCommunicators();

  // Ends all calls of ranks that wait for other ranks.
  void Close();

  Communicators& communicators() { return communicators_; }
  const MemoryCalls& memory() const { return memory_; }
  CoreCounters& cores() { return programs_.counters(); }
  // nullptr when the node has no peers.
  NodeElection* election() { return election_.get(); }

 private:
  class Events;

  NodeCommunicators(Communicators::Options options, LiveInstance& live, const Clock& clock);

  absl::Status StartLink(const Options& options, const Clock& clock);
  absl::Status StartEfa(const Options& options);
  void OnChange();

  LiveInstance& live_;
  Communicators communicators_;
  CommunicatorCalls calls_;
  MemoryCalls memory_;
  ProgramCalls programs_;
  Mutex mutex_;
  std::set<std::string> tokens_ ABSL_GUARDED_BY(mutex_);  // of claims with a call
  std::unique_ptr<NodeElection> election_;
  std::unique_ptr<PeerEvents> events_;
  std::unique_ptr<PeerEvents> efa_events_;
  std::unique_ptr<PeerLink> link_;  // last: the threads of both links call the members above
  std::unique_ptr<PeerLink> efa_;
};

}  // namespace tahoma::sim

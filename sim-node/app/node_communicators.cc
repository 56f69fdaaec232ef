#include "sim-node/app/node_communicators.h"

#include "lib/base/status.h"
#include "sim-node/serve/communicator_of_instance.h"

namespace tahoma::sim {

NodeCommunicators::NodeCommunicators(Communicators::Options options, LiveInstance& live)
    : live_(live), communicators_(std::move(options)), calls_(communicators_) {}

absl::StatusOr<std::unique_ptr<NodeCommunicators>> NodeCommunicators::Start(const Options& options,
                                                                            LiveInstance& live,
                                                                            NodeServer& server) {
  const int node_id = live.Read(NodeIdOf);
  std::unique_ptr<NodeCommunicators> made(
      new NodeCommunicators({.node_id = node_id, .links = live.Read(LinksAround)}, live));
  if (!options.link_address.empty() && !options.ultra_server.id.empty()) {
    std::vector<PeerAddress> peers;
    for (const Options::Peer& peer : options.ultra_server.peers) {
      peers.push_back({.node_id = peer.node_id, .address = peer.address});
    }
    PeerLink::Options link;
    link.node_id = node_id;
    link.ultra_server = options.ultra_server.id;
    link.listen_address = options.link_address;
    link.peers = std::move(peers);
    link.silence =
        std::chrono::duration_cast<std::chrono::milliseconds>(options.ultra_server.peer_timeout);
    auto started = PeerLink::Start(std::move(link), made->communicators_);
    if (!started.ok()) return Annotate(started.status(), "linkAddress");
    made->link_ = *std::move(started);
    made->communicators_.Connect(*made->link_);
  }
  AddCommunicatorCalls(server, live, made->calls_, [raw = made.get()](const std::string& token) {
    const std::lock_guard lock(raw->mutex_);
    raw->tokens_.insert(token);
  });
  live.Listen([raw = made.get()] { raw->OnChange(); });
  return made;
}

void NodeCommunicators::Close() {
  const std::lock_guard lock(mutex_);
  for (const std::string& token : tokens_) calls_.LeaveAll(token);
}

// Links tell their new state; whoever's claim is gone leaves what it has
// joined.
void NodeCommunicators::OnChange() {
  std::vector<LinkState> unhealthy;
  std::vector<std::string> gone;
  const std::lock_guard lock(mutex_);
  live_.Read([&](const Instance& node) {
    unhealthy = UnhealthyLinks(node);
    for (const std::string& token : tokens_) {
      if (!node.FindClaim(token).ok()) gone.push_back(token);
    }
    return true;
  });
  communicators_.SetLinks(std::move(unhealthy));
  for (const std::string& token : gone) {
    tokens_.erase(token);
    calls_.LeaveAll(token);
  }
}

}  // namespace tahoma::sim

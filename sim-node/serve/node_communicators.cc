#include "sim-node/serve/node_communicators.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "lib/base/status.h"
#include "sim-node/serve/communicator_of_instance.h"
#include "sim-node/serve/election_messages.h"
#include "sim-node/serve/socket_folders.h"

namespace tahoma::sim {

// Hands each message of another node to the communicators or to the election.
class NodeCommunicators::Events final : public PeerEvents {
 public:
  Events(Communicators& communicators, NodeElection* election)
      : communicators_(communicators), election_(election) {}

  std::vector<wire::Request> OnPeerConnected(int node) override {
    if (election_ != nullptr) election_->OnPeerConnected(node);
    return communicators_.OnPeerConnected(node);
  }
  absl::Status OnPeerMessage(int node, wire::Request message) override {
    if (message.method != kElectionMethod) {
      return communicators_.OnPeerMessage(node, std::move(message));
    }
    if (election_ != nullptr) election_->OnPeerMessage(node, message);
    return absl::OkStatus();
  }
  void OnPeerLost(int node, LostConnection lost, const absl::Status& why) override {
    if (election_ != nullptr && lost == LostConnection::kFromPeer) election_->OnPeerLost(node);
    communicators_.OnPeerLost(node, lost, why);
  }

 private:
  Communicators& communicators_;
  NodeElection* const election_;
};

namespace {

// Secures the peer link against strangers: by a private folder, or by TLS.
absl::Status Secure(const NodeCommunicators::Options& options, PeerLink::Options& link) {
  link.log = [](const std::string& line) { spdlog::warn("{}", line); };
  TAHOMA_ASSIGN_OR_RETURN(const wire::Address address, wire::ParseAddress(link.listen_address));
  if (address.is_unix()) TAHOMA_RETURN_IF_ERROR(MakePrivateFolder(address.path));
  if (!options.tls) return absl::OkStatus();
  TAHOMA_ASSIGN_OR_RETURN(link.tls, wire::Tls::Open(*options.tls));
  return absl::OkStatus();
}

}  // namespace

NodeCommunicators::NodeCommunicators(Communicators::Options options, LiveInstance& live,
                                     const Clock& clock)
    : live_(live),
      communicators_(std::move(options)),
      calls_(communicators_),
      memory_(communicators_, calls_),
      programs_(clock) {}

NodeCommunicators::~NodeCommunicators() {
  if (election_) election_->Stop();  // the election uses the link, and the link is destroyed first
}

absl::StatusOr<std::unique_ptr<NodeCommunicators>> NodeCommunicators::Start(const Options& options,
                                                                            LiveInstance& live,
                                                                            NodeServer& server,
                                                                            const Clock& clock) {
  NodePlace place = live.Read(PlaceOf);
  place.efa = options.efa_timing;
  std::unique_ptr<NodeCommunicators> made(new NodeCommunicators(
      {.node_id = live.Read(NodeIdOf), .links = live.Read(LinksAround), .place = std::move(place)},
      live, clock));
  if (options.ultra_server) {
    TAHOMA_RETURN_IF_ERROR(Annotate(made->StartLink(options, clock), "linkAddress"));
  }
  if (options.efa) {
    TAHOMA_RETURN_IF_ERROR(Annotate(made->StartEfa(options), "efa"));
  }
  const auto called = [raw = made.get()](const std::string& token) {
    const MutexLock lock(raw->mutex_);
    raw->tokens_.insert(token);
  };
  AddCommunicatorCalls(server, live, made->calls_, called);
  AddMemoryCalls(server, live, made->memory_, called);
  AddProgramCalls(server, live, made->programs_, made->memory_, called);
  live.Listen([raw = made.get()] { raw->OnChange(); });
  return made;
}

absl::Status NodeCommunicators::StartLink(const Options& options, const Clock& clock) {
  PeerLink::Options link = *options.ultra_server;
  link.node_id = live_.Read(NodeIdOf);
  NodeElection::Options election;
  for (const auto& peer : link.peers) election.peers.insert(peer.node_id);
  election.boot = static_cast<std::uint64_t>(clock.WallNow().time_since_epoch().count());
  election.timeout = options.election_timeout;
  if (!election.peers.empty()) {
    election_ = std::make_unique<NodeElection>(std::move(election), live_, clock);
  }
  TAHOMA_RETURN_IF_ERROR(Secure(options, link));
  events_ = std::make_unique<Events>(communicators_, election_.get());
  const auto made = [this](PeerLink& new_link) {
    communicators_.Connect(new_link);
    if (!election_) return;
    election_->Connect([&new_link](int place, wire::Request message) {
      return new_link.Offer(place, std::move(message));
    });
  };
  TAHOMA_ASSIGN_OR_RETURN(link_, PeerLink::Start(std::move(link), *events_, made));
  spdlog::info("listening for the UltraServer's other nodes at {}", link_->address().ToString());
  if (election_) election_->Start();
  return absl::OkStatus();
}

absl::Status NodeCommunicators::StartEfa(const Options& options) {
  PeerLink::Options link = *options.efa;
  link.node_id = live_.Read(NodeIdOf);
  TAHOMA_RETURN_IF_ERROR(Secure(options, link));
  efa_events_ = std::make_unique<Events>(communicators_, nullptr);
  const auto made = [this](PeerLink& new_link) { communicators_.ConnectEfa(new_link); };
  TAHOMA_ASSIGN_OR_RETURN(efa_, PeerLink::Start(std::move(link), *efa_events_, made));
  spdlog::info("listening for the nodes of other domains at {}", efa_->address().ToString());
  return absl::OkStatus();
}

void NodeCommunicators::Close() {
  const MutexLock lock(mutex_);
  for (const std::string& token : tokens_) calls_.LeaveAll(token);
}

// Passes on the new state of links. The owner of a released claim leaves its communicators, and the
// claim's memory is dropped.
void NodeCommunicators::OnChange() {
  if (election_) election_->OnInstanceChanged();
  std::vector<LinkState> unhealthy;
  std::vector<torus::ChipIndex> dead;
  std::vector<torus::ChipIndex> without_efa;
  std::vector<std::string> gone;
  const MutexLock lock(mutex_);
  const std::set<std::string> tokens = tokens_;
  live_.Read([&](const Instance& node) {
    unhealthy = UnhealthyLinks(node);
    dead = DeadChips(node);
    without_efa = ChipsWithoutEfa(node);
    for (const std::string& token : tokens) {
      if (!node.FindClaim(token).ok()) gone.push_back(token);
    }
    return true;
  });
  communicators_.SetLinks(std::move(unhealthy), std::move(dead), std::move(without_efa));
  for (const std::string& token : gone) {
    tokens_.erase(token);
    calls_.LeaveAll(token);
    memory_.Drop(token);
  }
}

}  // namespace tahoma::sim

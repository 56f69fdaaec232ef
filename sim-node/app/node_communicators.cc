#include "sim-node/app/node_communicators.h"

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

torus::Shape TorusOf(const Instance& node) {
  return node.options().ultra_server ? torus::kUltraServerShape : node.type().torus;
}

}  // namespace

NodeCommunicators::NodeCommunicators(Communicators::Options options, LiveInstance& live,
                                     int first_chip)
    : live_(live),
      first_chip_(first_chip),
      communicators_(std::move(options)),
      calls_(communicators_) {}

absl::StatusOr<std::unique_ptr<NodeCommunicators>> NodeCommunicators::Start(const Options& options,
                                                                            LiveInstance& live,
                                                                            NodeServer& server) {
  const int node_id = options.ultra_server.id.empty() ? 0 : options.ultra_server.node_id;
  TorusLinks links = live.Read(
      [](const Instance& node) { return TorusLinks(TorusOf(node), node.type().chip->links); });
  const int chips = live.Read([](const Instance& node) { return node.chip_count(); });
  std::unique_ptr<NodeCommunicators> made(new NodeCommunicators(
      {.node_id = node_id, .links = std::move(links)}, live, node_id * chips));
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
    auto started = PeerLink::Start(std::move(link), made->communicators_);
    if (!started.ok()) return Annotate(started.status(), "linkAddress");
    made->link_ = *std::move(started);
    made->communicators_.Connect(*made->link_);
  }
  for (const std::string_view method : {kCommJoin, kCommRun, kCommLeave}) {
    server.AddWorkloadCall(std::string(method),
                           [raw = made.get()](const Caller& caller, const wire::Request& request) {
                             return raw->Serve(caller, request);
                           });
  }
  live.Listen([raw = made.get()] { raw->OnChange(); });
  return made;
}

absl::StatusOr<wire::Reply> NodeCommunicators::Serve(const Caller& caller,
                                                     const wire::Request& request) {
  std::vector<Member> cores;
  live_.Read([&](const Instance& node) {
    const int whole = hw::LogicalCores(*node.type().chip, caller.claim.lnc);
    for (const int chip : caller.claim.TouchedChips()) {
      int ranks = whole;
      for (const CoresOfChip& part : caller.claim.cores) {
        if (part.chip == chip) ranks = static_cast<int>(part.cores.size());
      }
      cores.push_back({.chip = torus::ChipIndex(first_chip_ + chip), .ranks = ranks});
    }
    return true;
  });
  {
    const std::lock_guard lock(mutex_);
    tokens_.insert(caller.token);
  }
  return calls_.Call(request, caller.token, cores);
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
    for (int chip = 0; chip < node.chip_count(); ++chip) {
      for (const torus::Axis axis : torus::kAxes) {
        for (const torus::Direction direction : torus::kDirections) {
          const std::uint16_t permille =
              node.chip(chip).link_permille[PortIndex({axis, direction})];
          if (permille == TorusLinks::kHealthy) continue;
          unhealthy.push_back(
              {.link = TorusLinks::IdOf(torus::ChipIndex(first_chip_ + chip), axis, direction),
               .permille = permille});
        }
      }
    }
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

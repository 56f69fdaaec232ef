#include "sim-node/serve/node_election.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "sim-node/serve/election_messages.h"

namespace tahoma::sim {
namespace {

int PlaceOf(const LiveInstance& live) {
  return live.Read([](const Instance& node) {
    TAHOMA_CHECK(node.options().ultra_server.has_value());
    return node.options().ultra_server->node_id;
  });
}

std::uint64_t SerialOf(const LiveInstance& live) {
  return live.Read([](const Instance& node) {
    return SerialNumber(node.options().ultra_server->id, node.options().ultra_server->node_id);
  });
}

}  // namespace

std::uint64_t SerialNumber(std::string_view ultra_server_id, int place) {
  // FNV-1a (Fowler, Noll, Vo): the same on every machine.
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : ultra_server_id) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return (hash & ~std::uint64_t{0xff}) | (static_cast<std::uint64_t>(place + 1) << 4U);
}

Port PortOfCable(int place, CableSide side) {
  const bool up_the_ring = (place % 2 == 0) == (side == CableSide::kLeft);
  return {torus::Axis::kZ, up_the_ring ? torus::Direction::kPlus : torus::Direction::kMinus};
}

int PlaceBehind(int place, CableSide side) {
  const bool up_the_ring = PortOfCable(place, side).direction == torus::Direction::kPlus;
  return (place + (up_the_ring ? 1 : hw::kUltraServerNodes - 1)) % hw::kUltraServerNodes;
}

bool IsCableUp(const Instance& instance, CableSide side) {
  const int place = instance.options().ultra_server->node_id;
  const Port port = PortOfCable(place, side);
  for (int i = 0; i < instance.chip_count(); ++i) {
    if (!instance.IsLinkDependable(i, port)) return false;
    if (instance.chip(i).fault == ChipFault::kDma) return false;
  }
  return true;
}

NodeElection::NodeElection(Options options, LiveInstance& live, const Clock& clock)
    : options_(std::move(options)),
      live_(live),
      clock_(clock),
      begin_(clock.MonotonicNow()),
      place_(PlaceOf(live)),
      election_({.serial = SerialOf(live), .boot = options_.boot, .timeout = options_.timeout}) {}

VirtualTime NodeElection::Now() const {
  return VirtualTime(std::chrono::duration_cast<VirtualDuration>(clock_.MonotonicNow() - begin_));
}

std::optional<CableSide> NodeElection::SideOf(int place) const {
  for (const CableSide side : kCableSides) {
    if (PlaceBehind(place_, side) == place) return side;
  }
  return std::nullopt;  // the node across the ring, to which no cable leads
}

void NodeElection::Connect(Offer offer) {
  const MutexLock lock(mutex_);
  offer_ = std::move(offer);
}

void NodeElection::Follow(Follower follower) {
  const MutexLock lock(mutex_);
  follower_ = std::move(follower);
  if (follower_) follower_(shown_);
}

void NodeElection::Start() {
  {
    const MutexLock lock(mutex_);
    ReadInstance();
    election_.Start(Now());
    Flush();
  }
  thread_ = std::jthread([this] {
    while (Pause()) Tick();
  });
}

bool NodeElection::Pause() {
  const auto period = std::chrono::duration_cast<std::chrono::milliseconds>(kNoticePeriod);
  const auto deadline = CondVar::In(period);
  const MutexLock lock(mutex_);
  while (!stopped_ && stopping_.WaitUntil(mutex_, deadline)) {
  }
  return !stopped_;
}

void NodeElection::Stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    offer_ = nullptr;
  }
  stopping_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

absl::Status NodeElection::Elect() {
  const MutexLock lock(mutex_);
  ReadInstance();
  const absl::Status begun = election_.Elect(Now());
  Flush();
  return begun;
}

absl::Status NodeElection::SetMode(UltraServerMode mode) {
  const MutexLock lock(mutex_);
  ReadInstance();
  const absl::Status set = election_.SetMode(mode);
  Flush();
  return set;
}

void NodeElection::OnInstanceChanged() {
  const MutexLock lock(mutex_);
  ReadInstance();
  Flush();
}

void NodeElection::OnPeerConnected(int place) {
  const MutexLock lock(mutex_);
  if (const auto side = SideOf(place)) election_.Repeat(*side);
  Flush();
}

void NodeElection::OnPeerMessage(int place, const wire::Request& message) {
  const absl::StatusOr<Notice> notice = DecodeNotice(message);
  const MutexLock lock(mutex_);
  const auto side = SideOf(place);
  if (!notice.ok() || !side) return;
  election_.OnNotice(Now(), *side, *notice);
  Flush();
}

void NodeElection::OnPeerLost(int place) {
  const MutexLock lock(mutex_);
  if (const auto side = SideOf(place)) election_.Forget(*side);
}

void NodeElection::Tick() {
  const MutexLock lock(mutex_);
  election_.OnTick(Now());
  Flush();
}

void NodeElection::ReadInstance() {
  std::array<bool, 2> up{};
  bool in_use = false;
  int nodes = 0;  // that a claim wants to work together
  live_.Read([&](const Instance& node) {
    for (const HeldClaim* claim : node.claims()) {
      in_use = true;
      nodes = std::max(nodes, claim->ultra_server_mode);
    }
    for (const CableSide side : kCableSides) {
      up[SideIndex(side)] =
          options_.peers.contains(PlaceBehind(place_, side)) && IsCableUp(node, side);
    }
    return true;
  });
  // The runtime chooses the mode before it takes cores. The instance has admitted the claim, so the
  // mode is possible, unless the claim is older than this program; then there is nothing to choose.
  if (const UltraServerMode mode = hw::ModeFor(nodes, election_.result().modes);
      mode != UltraServerMode::kUnset) {
    (void)election_.SetMode(mode);
  }
  // Cores in use forbid changes, so this comes after the mode.
  election_.SetCoresInUse(Now(), in_use);
  for (const CableSide side : kCableSides) election_.OnCable(Now(), side, up[SideIndex(side)]);
}

// Passes the election's result to the instance and its notices to the neighbours. A notice that is
// not taken is not retried: the next one carries the whole state.
void NodeElection::Flush() {
  ElectionResult result = election_.result();
  if (result != shown_) {
    live_.Show([&](Instance& node) { node.SetElection(result); });
    shown_ = std::move(result);
    if (follower_) follower_(shown_);
  }
  for (const Election::Outgoing& out : election_.DrainNotices()) {
    if (offer_) (void)offer_(PlaceBehind(place_, out.side), EncodeNotice(out.notice));
  }
}

}  // namespace tahoma::sim

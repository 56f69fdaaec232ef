#include "sim-node/serve/peer_link.h"

#include <algorithm>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/fields.h"
#include "sim-node/participants/participant.h"

namespace tahoma::sim {
namespace {

constexpr std::string_view kRefusedConnection = "a node's connection was refused";

constexpr std::string_view kHello = "peerHello";
constexpr std::string_view kAlive = "peerAlive";
// Heartbeats within Options::silence: a single late heartbeat does not lose a peer.
constexpr int kBeats = 4;
constexpr std::int64_t kMaxAliveMs = 3'600'000;
// The most frames in a peer's queue; a frame with data has at most 1 MiB.
constexpr std::size_t kQueuedFrames = 64;
// Accepted connections beyond two per peer, for peers that restart.
constexpr std::size_t kSpareIncoming = 26;
// A greeting, sent by any program that connects: two names, two numbers and no payload.
constexpr wire::FrameBounds kHelloFrame = {.header_bytes = 4096, .payload_bytes = 0};
// A message of a peer that has greeted. The payload is a chunk.
constexpr wire::FrameBounds kMessageFrame = {.payload_bytes = kChunkBytes};

}  // namespace

// The connection that we dialled, and its queue of messages.
struct PeerLink::Outgoing {
  explicit Outgoing(PeerAddress to) : peer(std::move(to)) {}

  const PeerAddress peer;
  Mutex mutex;
  // nullptr while there is no connection.
  std::shared_ptr<Queue> queue ABSL_GUARDED_BY(mutex);
  std::shared_ptr<wire::Connection> connection ABSL_GUARDED_BY(mutex);
  std::string unreached;  // the reason as last logged; used by the thread alone
  std::jthread thread;
};

absl::StatusOr<std::unique_ptr<PeerLink>> PeerLink::Start(
    Options options, PeerEvents& events, const std::function<void(PeerLink& link)>& made) {
  for (std::size_t i = 0; i < options.peers.size(); ++i) {
    const int node = options.peers[i].node_id;
    if (node == options.node_id) {
      return InvalidArgument("node {} is named as its own peer", node);
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (options.peers[j].node_id == node) return InvalidArgument("peer {} is named twice", node);
      if (!options.name.empty() && options.peers[j].name == options.peers[i].name) {
        return InvalidArgument("peer {} is named twice", options.peers[i].name);
      }
    }
    if (!options.name.empty() && options.peers[i].name == options.name) {
      return InvalidArgument("node {} is named as its own peer", options.name);
    }
    if (options.tls && options.peers[i].name.empty()) {
      return InvalidArgument("peer {} has no nodeName, which its certificate must be for", node);
    }
  }
  TAHOMA_ASSIGN_OR_RETURN(auto listener, wire::Listener::Open(options.listen_address));
  std::unique_ptr<PeerLink> link(new PeerLink(std::move(options), events, std::move(listener)));
  if (made) made(*link);
  link->accept_thread_ = std::jthread([raw = link.get()] { raw->AcceptLoop(); });
  for (auto& [node, outgoing] : link->outgoing_) {
    outgoing->thread =
        std::jthread([raw = link.get(), to = outgoing.get()] { raw->WriteLoop(*to); });
  }
  return link;
}

PeerLink::PeerLink(Options options, PeerEvents& events, std::unique_ptr<wire::Listener> listener)
    : options_(std::move(options)), events_(events), listener_(std::move(listener)) {
  for (const PeerAddress& peer : options_.peers) {
    outgoing_[peer.node_id] = std::make_unique<Outgoing>(peer);
  }
}

PeerLink::~PeerLink() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    for (Incoming& incoming : incoming_) incoming.connection->Shutdown();
  }
  changed_.NotifyAll();
  listener_->Close();
  for (auto& [node, outgoing] : outgoing_) {
    const MutexLock lock(outgoing->mutex);
    if (outgoing->connection) outgoing->connection->Shutdown();
    if (outgoing->queue) outgoing->queue->Close();
  }
  for (auto& [node, outgoing] : outgoing_) outgoing->thread.join();
  accept_thread_.join();
  // A thread may look at any entry until the thread ends, so all threads end before an entry goes.
  for (Incoming& incoming : incoming_) incoming.thread.join();
}

std::vector<int> PeerLink::peers() const {
  std::vector<int> nodes;
  for (const auto& [node, outgoing] : outgoing_) nodes.push_back(node);
  return nodes;
}

std::string PeerLink::NameOf(int node) const {
  const auto found = outgoing_.find(node);
  return found == outgoing_.end() ? "" : found->second->peer.name;
}

absl::Status PeerLink::Send(int node, wire::Request message) {
  const auto found = outgoing_.find(node);
  if (found == outgoing_.end()) return InvalidArgument("node {} is no peer", node);
  const std::shared_ptr<Queue> queue = QueueOf(node);
  if (!queue || !queue->Push(std::move(message))) {
    return Unavailable("node {} at {} cannot be reached", node, found->second->peer.address);
  }
  return absl::OkStatus();
}

bool PeerLink::Offer(int node, wire::Request message) {
  const std::shared_ptr<Queue> queue = QueueOf(node);
  return queue && queue->TryPush(std::move(message));
}

bool PeerLink::Connected(int node) const { return QueueOf(node) != nullptr; }

std::shared_ptr<PeerLink::Queue> PeerLink::QueueOf(int node) const {
  const auto found = outgoing_.find(node);
  if (found == outgoing_.end()) return nullptr;
  const MutexLock lock(found->second->mutex);
  return found->second->queue;
}

void PeerLink::WriteLoop(Outgoing& outgoing) {
  do {
    auto dialled = wire::Connection::Dial(outgoing.peer.address, options_.io_timeout);
    LogReach(outgoing, dialled.status());
    if (!dialled.ok()) continue;
    const std::shared_ptr<wire::Connection> connection = *std::move(dialled);
    absl::Status proven = Secure(*connection, wire::TlsRole::kClient);
    if (proven.ok()) proven = CheckProof(*connection, outgoing.peer);
    if (!proven.ok()) {
      LogRefusal(kRefusedConnection, proven);
      continue;
    }
    const absl::Status ended = Converse(outgoing, *connection);
    events_.OnPeerLost(outgoing.peer.node_id, LostConnection::kToPeer, ended);
  } while (WaitToRedial());
}

// Logs the reason once when a node cannot be reached, and once more when the node is reached,
// because an absent node is dialled again and again.
void PeerLink::LogReach(Outgoing& outgoing, const absl::Status& reached) {
  const std::string why = reached.ok() ? "" : std::string(reached.message());
  if (std::exchange(outgoing.unreached, why) == why || !options_.log) return;
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
  }
  const PeerAddress& peer = outgoing.peer;
  const std::string name = peer.name.empty() ? fmt::format("node {}", peer.node_id) : peer.name;
  options_.log(why.empty() ? fmt::format("{} is reached", name)
                           : fmt::format("{} is not reached, and dialled again: {}", name, why));
}

// Waits for the time to dial again and returns true; false when stopped.
bool PeerLink::WaitToRedial() {
  const auto deadline = CondVar::In(options_.redial);
  const MutexLock lock(mutex_);
  while (!stopped_ && changed_.WaitUntil(mutex_, deadline)) {
  }
  return !stopped_;
}

// Greets, then sends queued messages until the connection breaks.
absl::Status PeerLink::Converse(Outgoing& outgoing, wire::Connection& connection) {
  const auto queue = std::make_shared<Queue>(kQueuedFrames);
  const auto send = [&](std::uint64_t id, const wire::Request& message) -> absl::Status {
    TAHOMA_ASSIGN_OR_RETURN(const wire::Frame frame, wire::EncodeRequest(id, message));
    return connection.Send(frame, options_.io_timeout);
  };
  std::uint64_t id = 0;
  const std::chrono::milliseconds beat = options_.silence / kBeats;
  Json hello = {{"aliveMs", beat.count()}};
  if (options_.name.empty()) {
    hello["nodeId"] = options_.node_id;
    hello["ultraServer"] = options_.ultra_server;
  } else {
    hello["nodeName"] = options_.name;
  }
  TAHOMA_RETURN_IF_ERROR(send(id++, {.method = std::string(kHello), .params = hello.dump()}));
  {
    // Messages sent from here on are queued, and leave after the messages of OnPeerConnected.
    const MutexLock lock(outgoing.mutex);
    outgoing.connection = std::shared_ptr<wire::Connection>(&connection, [](auto*) {});
    outgoing.queue = queue;
  }
  // The peer never writes here, so the read ends only with the connection.
  const std::jthread watch([&connection, queue] {
    (void)connection.Receive();
    queue->Close();
  });
  absl::Status status;
  {
    // The destructor shuts down the connections in `outgoing`. The destructor may have run before
    // this connection was stored there.
    const MutexLock lock(mutex_);
    if (stopped_) status = Unavailable("this node ends");
  }
  if (!status.ok()) connection.Shutdown();
  for (const wire::Request& first : events_.OnPeerConnected(outgoing.peer.node_id)) {
    if (status.ok()) status = send(id++, first);
  }
  while (status.ok()) {
    std::vector<wire::Request> batch = queue->PopAllFor(kQueuedFrames, beat);
    if (batch.empty()) {
      if (queue->closed()) status = Unavailable("the connection was closed");
      batch.push_back({.method = std::string(kAlive), .params = "{}"});
    }
    for (const wire::Request& message : batch) {
      if (status.ok()) status = send(id++, message);
    }
  }
  queue->Close();
  connection.Shutdown();
  const MutexLock lock(outgoing.mutex);
  outgoing.connection = nullptr;
  outgoing.queue = nullptr;
  return status;
}

void PeerLink::AcceptLoop() {
  while (true) {
    auto accepted = listener_->Accept();
    if (accepted.ok()) Admit(*std::move(accepted));
    const MutexLock lock(mutex_);
    if (stopped_) return;
  }
}

void PeerLink::Admit(std::shared_ptr<wire::Connection> connection) {
  const MutexLock lock(mutex_);
  incoming_.remove_if([](const Incoming& incoming) { return incoming.done; });
  if (stopped_) return;
  const std::size_t most = 2 * outgoing_.size() + kSpareIncoming;
  const auto leaving = static_cast<std::size_t>(
      std::ranges::count_if(incoming_, [](const Incoming& other) { return other.leaving; }));
  if (incoming_.size() - leaving >= most) {
    // The oldest connection without a greeting makes room. When too many are leaving already,
    // strangers dial faster than their threads end; the new connection is closed, and a peer dials
    // again soon.
    const auto silent = std::ranges::find_if(incoming_, [](const Incoming& other) {
      return other.node < 0 && !other.done && !other.leaving;
    });
    if (silent == incoming_.end() || leaving >= most) return;
    silent->leaving = true;
    silent->connection->Shutdown();
  }
  Incoming& incoming = incoming_.emplace_back();
  incoming.connection = std::move(connection);
  incoming.thread = std::jthread([this, &incoming] {
    ReadLoop(incoming);
    const MutexLock ending(mutex_);
    incoming.done = true;
    changed_.NotifyAll();
  });
}

void PeerLink::ReadLoop(Incoming& incoming) {
  wire::Connection& connection = *incoming.connection;
  const absl::StatusOr<Hello> peer = Greeting(connection);
  if (!peer.ok()) {
    LogRefusal(kRefusedConnection, peer.status());
    return connection.Shutdown();
  }
  EndFormer(incoming, peer->node);
  const absl::Status ended = ReadMessages(*peer, connection);
  connection.Shutdown();
  events_.OnPeerLost(peer->node, LostConnection::kFromPeer, ended);
  if (absl::IsDeadlineExceeded(ended)) HangUp(peer->node);
}

// Passes messages on until the connection ends and returns why; kDeadlineExceeded when the peer was
// silent for too long.
absl::Status PeerLink::ReadMessages(const Hello& peer, wire::Connection& connection) {
  bool dropped = false;
  while (true) {
    // A begun frame must go on, even from a peer whose silence means nothing.
    auto head = connection.ReceiveHead(kMessageFrame, peer.patience, options_.io_timeout);
    if (absl::IsDeadlineExceeded(head.status())) {
      return DeadlineExceeded("nothing was heard of it for {} ms", peer.patience.count());
    }
    TAHOMA_RETURN_IF_ERROR(head.status());
    TAHOMA_ASSIGN_OR_RETURN(std::string payload,
                            connection.ReceivePayload(head->payload_bytes, options_.io_timeout));
    TAHOMA_ASSIGN_OR_RETURN(
        wire::NumberedRequest message,
        wire::DecodeRequest({.header = std::move(head->header), .payload = std::move(payload)}));
    if (message.request.method == kAlive) continue;
    const absl::Status taken = events_.OnPeerMessage(peer.node, std::move(message.request));
    // Logs one line per connection, so a peer with many bad messages cannot fill the log.
    if (!taken.ok() && !std::exchange(dropped, true)) {
      const std::string& name = outgoing_.at(peer.node)->peer.name;
      LogRefusal(fmt::format("a message of node {} was dropped",
                             name.empty() ? std::to_string(peer.node) : name),
                 taken);
    }
  }
}

// Ends the peer's former connections, because a peer that dials again has given them up. Waits
// until OnPeerLost has been called for each, before the new connection's first message is read.
void PeerLink::EndFormer(Incoming& incoming, int node) {
  const MutexLock lock(mutex_);
  incoming.node = node;
  for (const Incoming& other : incoming_) {
    if (&other == &incoming) break;
    if (other.node == node && !other.done) other.connection->Shutdown();
  }
  while (!stopped_ && FormerRuns(incoming, node)) changed_.Wait(mutex_);
}

bool PeerLink::FormerRuns(const Incoming& incoming, int node) const {
  for (const Incoming& other : incoming_) {
    if (&other == &incoming) return false;  // later connections wait in turn
    if (other.node == node && !other.done) return true;
  }
  return false;
}

// Ends our own connection to the peer, because no thread may block in Send. WriteLoop dials again.
void PeerLink::HangUp(int node) {
  Outgoing& outgoing = *outgoing_.at(node);
  const MutexLock lock(outgoing.mutex);
  if (outgoing.connection) outgoing.connection->Shutdown();
  if (outgoing.queue) outgoing.queue->Close();
}

absl::Status PeerLink::Secure(wire::Connection& connection, wire::TlsRole role) const {
  if (const std::optional<uid_t> user = connection.peer_user()) {
    if (wire::IsOwnUser(connection)) return absl::OkStatus();
    return PermissionDenied("{} is a program of user {}, not of ours", connection.peer(), *user);
  }
  return options_.tls ? connection.StartTls(*options_.tls, role, options_.io_timeout)
                      : absl::OkStatus();
}

absl::Status PeerLink::CheckProof(const wire::Connection& connection,
                                  const PeerAddress& peer) const {
  if (!options_.tls || connection.peer_user() || connection.Proves(peer.name)) {
    return absl::OkStatus();
  }
  return PermissionDenied("{} has no certificate for node \"{}\"", connection.peer(), peer.name);
}

void PeerLink::LogRefusal(std::string_view what, const absl::Status& why) {
  if (!options_.log) return;
  std::string line = fmt::format("{}: {}", what, Message(why));
  {
    const MutexLock lock(mutex_);
    if (stopped_ || std::exchange(logged_, line) == line) return;
  }
  options_.log(line);
}

absl::StatusOr<PeerLink::Hello> PeerLink::Greeting(wire::Connection& connection) {
  TAHOMA_RETURN_IF_ERROR(Secure(connection, wire::TlsRole::kServer));
  TAHOMA_ASSIGN_OR_RETURN(
      wire::FrameHead head,
      connection.ReceiveHead(kHelloFrame, options_.io_timeout, options_.io_timeout));
  TAHOMA_ASSIGN_OR_RETURN(const wire::NumberedRequest hello,
                          wire::DecodeRequest({.header = std::move(head.header)}));
  if (hello.request.method != kHello) {
    return InvalidArgument("a peer began with \"{}\"", hello.request.method);
  }
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(hello.request.params, kHello));
  wire::Fields fields(json, std::string(kHello));
  const absl::StatusOr<int> node = Recognise(fields);
  const std::chrono::milliseconds beat(fields.IntOr("aliveMs", 0, kMaxAliveMs, 0));
  TAHOMA_RETURN_IF_ERROR(fields.status());
  TAHOMA_RETURN_IF_ERROR(node.status());
  TAHOMA_RETURN_IF_ERROR(CheckProof(connection, outgoing_.at(*node)->peer));
  // An older peer does not announce its heartbeats, so its silence means nothing.
  if (beat.count() == 0) return Hello{.node = *node, .patience = wire::kForever};
  return Hello{.node = *node, .patience = std::max(options_.silence, kBeats * beat)};
}

// Returns the number of the greeting peer; kPermissionDenied when no peer of ours has the name.
absl::StatusOr<int> PeerLink::Recognise(wire::Fields& fields) const {
  if (options_.name.empty()) {
    const int node = static_cast<int>(fields.Int("nodeId", 0, 3));
    const std::string ultra_server = fields.String("ultraServer", 0, 128);
    if (ultra_server == options_.ultra_server && outgoing_.contains(node)) return node;
    return PermissionDenied("node {} of UltraServer \"{}\" is no peer", node, ultra_server);
  }
  const std::string name = fields.String("nodeName", 1, 253);
  for (const auto& [node, outgoing] : outgoing_) {
    if (outgoing->peer.name == name) return node;
  }
  return PermissionDenied("node \"{}\" is no peer", name);
}

}  // namespace tahoma::sim

#include "sim-node/serve/peer_link.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "lib/base/status.h"
#include "lib/wire/fields.h"

namespace tahoma::sim {
namespace {

constexpr std::string_view kHello = "peerHello";
// Frames waiting for one peer: of 1 MiB at most when they carry data.
constexpr std::size_t kQueuedFrames = 64;
// Two connections at a time from each of three peers would do; the rest is for restarts.
constexpr std::size_t kMaxIncoming = 32;

}  // namespace

// The connection that we dialled, and what waits for it.
struct PeerLink::Outgoing {
  explicit Outgoing(PeerAddress to) : peer(std::move(to)) {}

  const PeerAddress peer;
  std::mutex mutex;                                    // the members below
  std::shared_ptr<BoundedQueue<wire::Request>> queue;  // nullptr while there is no connection
  std::shared_ptr<wire::Connection> connection;
  std::jthread thread;
};

absl::StatusOr<std::unique_ptr<PeerLink>> PeerLink::Start(Options options, PeerEvents& events) {
  for (std::size_t i = 0; i < options.peers.size(); ++i) {
    const int node = options.peers[i].node_id;
    if (node == options.node_id) {
      return InvalidArgument("node {} is named as its own peer", node);
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (options.peers[j].node_id == node) return InvalidArgument("peer {} is named twice", node);
    }
  }
  TAHOMA_ASSIGN_OR_RETURN(auto listener, wire::Listener::Open(options.listen_address));
  std::unique_ptr<PeerLink> link(new PeerLink(std::move(options), events, std::move(listener)));
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
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (Incoming& incoming : incoming_) incoming.connection->Shutdown();
  }
  stopping_.notify_all();
  listener_->Close();
  for (auto& [node, outgoing] : outgoing_) {
    const std::lock_guard lock(outgoing->mutex);
    if (outgoing->connection) outgoing->connection->Shutdown();
    if (outgoing->queue) outgoing->queue->Close();
  }
  for (auto& [node, outgoing] : outgoing_) outgoing->thread.join();
  accept_thread_.join();
  incoming_.clear();  // joins
}

std::vector<int> PeerLink::peers() const {
  std::vector<int> nodes;
  for (const auto& [node, outgoing] : outgoing_) nodes.push_back(node);
  return nodes;
}

absl::Status PeerLink::Send(int node, wire::Request message) {
  const auto found = outgoing_.find(node);
  if (found == outgoing_.end()) return InvalidArgument("node {} is no peer", node);
  std::shared_ptr<BoundedQueue<wire::Request>> queue;
  {
    const std::lock_guard lock(found->second->mutex);
    queue = found->second->queue;
  }
  if (!queue || !queue->Push(std::move(message))) {
    return Unavailable("node {} at {} cannot be reached", node, found->second->peer.address);
  }
  return absl::OkStatus();
}

bool PeerLink::Connected(int node) const {
  const auto found = outgoing_.find(node);
  if (found == outgoing_.end()) return false;
  const std::lock_guard lock(found->second->mutex);
  return found->second->queue != nullptr;
}

void PeerLink::WriteLoop(Outgoing& outgoing) {
  do {
    auto dialled = wire::Connection::Dial(outgoing.peer.address, options_.io_timeout);
    if (!dialled.ok()) continue;
    const std::shared_ptr<wire::Connection> connection = *std::move(dialled);
    const absl::Status ended = Converse(outgoing, *connection);
    events_.OnPeerLost(outgoing.peer.node_id, LostWay::kToPeer, ended);
  } while (WaitToRedial());
}

// True when it is time to dial again, false when stopped.
bool PeerLink::WaitToRedial() {
  std::unique_lock lock(mutex_);
  return !stopping_.wait_for(lock, options_.redial, [this] { return stopped_; });
}

// Greets and sends what is queued until the connection breaks.
absl::Status PeerLink::Converse(Outgoing& outgoing, wire::Connection& connection) {
  const auto queue = std::make_shared<BoundedQueue<wire::Request>>(kQueuedFrames);
  const auto send = [&](std::uint64_t id, const wire::Request& message) -> absl::Status {
    TAHOMA_ASSIGN_OR_RETURN(const wire::Frame frame, wire::EncodeRequest(id, message));
    return connection.Send(frame, options_.io_timeout);
  };
  std::uint64_t id = 0;
  const nlohmann::json hello = {{"nodeId", options_.node_id},
                                {"ultraServer", options_.ultra_server}};
  TAHOMA_RETURN_IF_ERROR(send(id++, {.method = std::string(kHello), .params = hello.dump()}));
  {
    // Whoever calls Send after this point is queued behind what must be told first.
    const std::lock_guard lock(outgoing.mutex);
    outgoing.connection = std::shared_ptr<wire::Connection>(&connection, [](auto*) {});
    outgoing.queue = queue;
  }
  // The peer never writes here, so a read ends only when the connection does.
  const std::jthread watch([&connection, queue] {
    (void)connection.Receive();
    queue->Close();
  });
  absl::Status status;
  for (const wire::Request& first : events_.OnPeerConnected(outgoing.peer.node_id)) {
    if (status.ok()) status = send(id++, first);
  }
  while (status.ok()) {
    const std::vector<wire::Request> batch = queue->PopAll(kQueuedFrames);
    if (batch.empty()) status = Unavailable("the connection was closed");
    for (const wire::Request& message : batch) {
      if (status.ok()) status = send(id++, message);
    }
  }
  queue->Close();
  connection.Shutdown();
  const std::lock_guard lock(outgoing.mutex);
  outgoing.connection = nullptr;
  outgoing.queue = nullptr;
  return status;
}

void PeerLink::AcceptLoop() {
  while (true) {
    auto accepted = listener_->Accept();
    if (accepted.ok()) Admit(*std::move(accepted));
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
  }
}

void PeerLink::Admit(std::shared_ptr<wire::Connection> connection) {
  const std::lock_guard lock(mutex_);
  incoming_.remove_if([](const Incoming& incoming) { return incoming.done; });
  if (stopped_ || incoming_.size() >= kMaxIncoming) return;
  Incoming& incoming = incoming_.emplace_back();
  incoming.connection = connection;
  incoming.thread = std::jthread([this, connection = std::move(connection), &incoming] {
    ReadLoop(*connection);
    const std::lock_guard ending(mutex_);
    incoming.done = true;
  });
}

void PeerLink::ReadLoop(wire::Connection& connection) {
  const absl::StatusOr<int> node = Greeting(connection);
  if (!node.ok()) return connection.Shutdown();
  absl::Status ended;
  while (ended.ok()) {
    auto frame = connection.Receive();
    if (!frame.ok()) {
      ended = frame.status();
      break;
    }
    auto message = wire::DecodeRequest(*std::move(frame));
    if (message.ok()) {
      events_.OnPeerMessage(*node, std::move(message->request));
    } else {
      ended = message.status();
    }
  }
  connection.Shutdown();
  events_.OnPeerLost(*node, LostWay::kFromPeer, ended);
}

absl::StatusOr<int> PeerLink::Greeting(wire::Connection& connection) {
  TAHOMA_ASSIGN_OR_RETURN(wire::Frame frame, connection.Receive(options_.io_timeout));
  TAHOMA_ASSIGN_OR_RETURN(const wire::NumberedRequest hello, wire::DecodeRequest(std::move(frame)));
  if (hello.request.method != kHello) {
    return InvalidArgument("a peer began with \"{}\"", hello.request.method);
  }
  TAHOMA_ASSIGN_OR_RETURN(const nlohmann::json json, wire::ParseJson(hello.request.params, kHello));
  wire::Fields fields(json, std::string(kHello));
  const int node = static_cast<int>(fields.Int("nodeId", 0, 3));
  const std::string ultra_server = fields.String("ultraServer", 0, 128);
  TAHOMA_RETURN_IF_ERROR(fields.status());
  if (ultra_server != options_.ultra_server || !outgoing_.contains(node)) {
    return PermissionDenied("node {} of UltraServer \"{}\" is no peer", node, ultra_server);
  }
  return node;
}

}  // namespace tahoma::sim

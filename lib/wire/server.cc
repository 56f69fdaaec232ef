#include "lib/wire/server.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lib/base/status.h"

namespace tahoma::wire {
namespace {

// A peer that does not read its reply for this long loses its connection.
constexpr std::chrono::seconds kSendTimeout(30);
// A call waits this long for room; each earlier call frees its room in about this time.
constexpr std::chrono::seconds kRoomTimeout(30);
constexpr std::chrono::nanoseconds kNoTime(0);
// Pause before accepting again when the process is out of file descriptors or memory.
constexpr std::chrono::milliseconds kExhaustedPause(50);

}  // namespace

Server::Server(std::unique_ptr<Listener> listener, Options options, Handler handler)
    : listener_(std::move(listener)),
      options_(std::move(options)),
      handler_(std::move(handler)),
      max_threads_(options_.introduce ? 2 * options_.max_connections : options_.max_connections),
      seats_({.strangers = options_.max_strangers,
              .known = options_.max_connections -
                       std::min(options_.max_connections, options_.max_strangers)}),
      room_(options_.room) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(std::string_view address, Options options,
                                                      Handler handler) {
  TAHOMA_ASSIGN_OR_RETURN(std::unique_ptr<Listener> listener, Listener::Open(address));
  std::unique_ptr<Server> server(
      new Server(std::move(listener), std::move(options), std::move(handler)));
  server->accept_thread_ = std::thread([raw = server.get()] { raw->AcceptLoop(); });
  return server;
}

void Server::AcceptLoop() {
  while (true) {
    absl::StatusOr<std::unique_ptr<Connection>> connection = listener_->Accept();
    if (connection.ok()) {
      Admit(*std::move(connection));
    } else if (absl::IsResourceExhausted(connection.status())) {
      const auto deadline = CondVar::In(kExhaustedPause);
      const MutexLock lock(mutex_);
      while (!stopped_ && stopping_.WaitUntil(mutex_, deadline)) {
      }
    } else {
      return;
    }
  }
}

Server::Peer* Server::EndUnseated(std::optional<Seats::Id> gone) {
  for (Peer& peer : peers_) {
    if (peer.id != gone) continue;
    peer.connection->Shutdown();
    return &peer;
  }
  return nullptr;
}

void Server::Admit(std::unique_ptr<Connection> connection) {
  Peer* unseated = nullptr;
  {
    const MutexLock lock(mutex_);
    for (auto peer = peers_.begin(); peer != peers_.end();) {
      if (peer->done) {
        peer->thread.join();
        peer = peers_.erase(peer);
      } else {
        ++peer;
      }
    }
    if (stopped_ || peers_.size() >= max_threads_) return;
    if (options_.own_user_only && !IsOwnUser(*connection)) return;
    Peer& peer = peers_.emplace_back();
    peer.id = ++last_id_;
    peer.connection = std::move(connection);
    peer.introduce_by = CondVar::In(options_.introduction);
    if (options_.introduce) {
      const std::optional<uid_t> user = peer.connection->peer_user();
      unseated = EndUnseated(seats_.Enter(peer.id, user ? fmt::format("user {}", *user) : ""));
    }
    peer.thread = std::thread([this, &peer] {
      ServePeer(peer);
      peer.connection->Shutdown();
      {
        const MutexLock leaving(mutex_);
        seats_.Leave(peer.id);
      }
      peer.done = true;
    });
  }
  // A stranger's thread waits only for its connection, and the connection is shut down. So there
  // are never more strangers' threads than seats.
  if (unseated == nullptr) return;
  unseated->thread.join();
  const MutexLock lock(mutex_);
  peers_.remove_if([unseated](const Peer& peer) { return &peer == unseated; });
}

void Server::ServePeer(Peer& peer) {
  while (true) {
    std::chrono::milliseconds idle = kForever;
    if (options_.introduce && peer.name.empty()) {
      idle = std::chrono::ceil<std::chrono::milliseconds>(peer.introduce_by - CondVar::In(kNoTime));
      if (idle <= kNoTime) return;  // a stranger that keeps sending runs out of time, too
    }
    absl::StatusOr<FrameHead> head =
        peer.connection->ReceiveHead(options_.frame, idle, options_.head_timeout);
    if (!head.ok() || !ServeCall(peer, *std::move(head))) return;
  }
}

// Reads the rest of a call and answers the call; false when the connection has ended.
bool Server::ServeCall(Peer& peer, FrameHead head) {
  Connection& connection = *peer.connection;
  absl::StatusOr<NumberedRequest> request = DecodeRequest({.header = std::move(head.header)});
  const std::uint64_t id = request.ok() ? request->id : 0;
  // Held until the reply is sent.
  const absl::StatusOr<Room::Hold> room =
      request.ok() ? Introduced(peer, request->request, head.payload_bytes)
                   : absl::StatusOr<Room::Hold>(request.status());
  absl::StatusOr<Reply> reply = Reply{};
  if (room.ok()) {
    absl::StatusOr<std::string> payload =
        connection.ReceivePayload(head.payload_bytes, options_.payload_timeout);
    if (!payload.ok()) return false;
    request->request.payload = *std::move(payload);
    request->request.wanted = [&connection] { return connection.usable(); };
    reply = handler_(request->request);
    request->request = {};
  } else {
    if (!connection.SkipPayload(head.payload_bytes, options_.head_timeout).ok()) return false;
    reply = room.status();
  }
  absl::StatusOr<Frame> out = EncodeReply(id, std::move(reply));
  if (!out.ok()) out = EncodeReply(id, out.status());
  absl::Status sent = connection.Send(*out, kSendTimeout);
  if (absl::IsInvalidArgument(sent)) {  // the reply is over the frame's bounds
    sent = connection.Send(*EncodeReply(id, sent), kSendTimeout);
  }
  return sent.ok() && request.ok();
}

absl::StatusOr<Room::Hold> Server::Introduced(Peer& peer, const Request& request,
                                              std::size_t payload_bytes) {
  if (!options_.introduce) return Room::Hold();
  absl::StatusOr<CallerOf> caller = options_.introduce(request);
  if (!caller.ok()) {
    // The caller's claim may be gone: the connection is a stranger's again, with a stranger's time.
    if (!std::exchange(peer.name, "").empty()) {
      peer.introduce_by = CondVar::In(options_.introduction);
    }
    return caller.status();
  }
  TAHOMA_RETURN_IF_ERROR(Seat(peer, caller->name));
  const std::size_t bytes = payload_bytes + caller->reply_bytes;
  if (bytes <= kSmallBytes) return Room::Hold();
  return room_.Acquire(caller->name, bytes, CondVar::In(kRoomTimeout));
}

absl::Status Server::Seat(Peer& peer, const std::string& name) {
  if (peer.name == name) return absl::OkStatus();
  const MutexLock lock(mutex_);
  if (seats_.Has(peer.id)) EndUnseated(seats_.Know(peer.id, name));
  if (!seats_.Has(peer.id)) return ResourceExhausted("too many connections of one caller are open");
  peer.name = name;
  return absl::OkStatus();
}

void Server::Stop() {
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    stopped_ = true;
    stopping_.NotifyAll();
    for (Peer& peer : peers_) peer.connection->Shutdown();
  }
  room_.Close();
  listener_->Close();
  accept_thread_.join();
  std::list<Peer> last;
  {
    const MutexLock lock(mutex_);
    last.swap(peers_);
  }
  for (Peer& peer : last) peer.thread.join();
}

}  // namespace tahoma::wire

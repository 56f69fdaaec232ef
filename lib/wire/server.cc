#include "lib/wire/server.h"

#include <chrono>

#include "lib/base/status.h"

namespace tahoma::wire {
namespace {

// The connection of a peer that does not read its reply for this long is closed.
constexpr std::chrono::seconds kSendTimeout(30);
// Pause before accepting again when the process is out of file descriptors or memory.
constexpr std::chrono::milliseconds kExhaustedPause(50);

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(std::string_view address, Options options,
                                                      Handler handler) {
  TAHOMA_ASSIGN_OR_RETURN(std::unique_ptr<Listener> listener, Listener::Open(address));
  std::unique_ptr<Server> server(new Server(std::move(listener), options, std::move(handler)));
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

void Server::Admit(std::unique_ptr<Connection> connection) {
  const MutexLock lock(mutex_);
  for (auto peer = peers_.begin(); peer != peers_.end();) {
    if (peer->done) {
      peer->thread.join();
      peer = peers_.erase(peer);
    } else {
      ++peer;
    }
  }
  if (stopped_ || peers_.size() >= options_.max_connections) return;
  if (options_.own_user_only && !IsOwnUser(*connection)) return;
  Peer& peer = peers_.emplace_back();
  peer.connection = std::move(connection);
  peer.thread = std::thread([this, &peer] {
    ServePeer(*peer.connection);
    peer.connection->Shutdown();
    peer.done = true;
  });
}

void Server::ServePeer(Connection& connection) {
  while (true) {
    absl::StatusOr<Frame> frame = connection.Receive();
    if (!frame.ok()) return;
    absl::StatusOr<NumberedRequest> request = DecodeRequest(*std::move(frame));
    const std::uint64_t id = request.ok() ? request->id : 0;
    absl::StatusOr<Reply> reply =
        request.ok() ? handler_(request->request) : absl::StatusOr<Reply>(request.status());
    absl::StatusOr<Frame> out = EncodeReply(id, reply);
    if (!out.ok()) out = EncodeReply(id, out.status());
    absl::Status sent = connection.Send(*out, kSendTimeout);
    if (absl::IsInvalidArgument(sent)) {  // the reply is over the frame's bounds
      sent = connection.Send(*EncodeReply(id, sent), kSendTimeout);
    }
    if (!sent.ok() || !request.ok()) return;
  }
}

void Server::Stop() {
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    stopped_ = true;
    stopping_.NotifyAll();
    for (Peer& peer : peers_) peer.connection->Shutdown();
  }
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

// Serves calls: one thread accepts, and each connection has a thread that answers calls in order.
//
//   absl::StatusOr<std::unique_ptr<Server>> server =
//       Server::Start("unix:/run/tahoma/node.sock", {}, [&](const Request& request) {
//         return node.Serve(request);
//       });
//
// Scope: our own programs' sockets. A connection that sends anything but frames is closed. A header
// that is no request gets an error reply with id 0, and its connection is closed. Other connections
// are not affected. A frame that has begun must be whole in time.
//
// A socket that strangers reach sets Options::introduce. The function names the caller from a
// call's header before the payload is kept. Then an unknown connection has a deadline, strangers
// take no places from known callers (lib/wire/seats.h), and payloads and replies have bounds, in
// sum and per caller (lib/wire/room.h).
//
// Thread safety: the handler is called from many threads at the same time. Stop may be called from
// any thread but a handler's.

#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "lib/base/mutex.h"
#include "lib/wire/call.h"
#include "lib/wire/room.h"
#include "lib/wire/seats.h"
#include "lib/wire/socket.h"

namespace tahoma::wire {

// The caller of a request.
struct CallerOf {
  std::string name = {};        // each name has one share of the server's bounds
  std::size_t reply_bytes = 0;  // the largest payload of the reply
};

class Server {
 public:
  using Handler = std::function<absl::StatusOr<Reply>(const Request&)>;
  // Names the caller of a request without its payload. A failure is sent as the answer, and the
  // payload is not kept.
  using Introduce = std::function<absl::StatusOr<CallerOf>(const Request& request)>;

  struct Options {
    // Connections beyond these are closed at once. A node has at most 128 claims, each with a few
    // processes.
    std::size_t max_connections = 512;
    // On a unix socket, closes connections of users other than our own and root at once.
    bool own_user_only = false;
    // The time for the rest of a header, or for a payload that is skipped; and the time for a
    // payload that is kept: at most 64 MiB from a program on the same machine.
    std::chrono::milliseconds head_timeout = std::chrono::seconds(10);
    std::chrono::milliseconds payload_timeout = std::chrono::seconds(30);
    FrameBounds frame = {};
    // Called from many threads. Null: every call is served, and the options below mean nothing.
    Introduce introduce = nullptr;
    // The connections, within max_connections, of strangers: every pod of a node can begin at once.
    std::size_t max_strangers = 128;
    // The time for a connection to name its caller; a program does so with its first call.
    std::chrono::milliseconds introduction = std::chrono::seconds(10);
    // Bounds of the payloads and replies in memory. A call of at most kSmallBytes needs no room.
    Room::Limits room = {.bytes = std::size_t{128} << 20U,
                         .bytes_per_caller = std::size_t{32} << 20U};
  };
  // Small calls never wait behind large calls: the small calls of all connections have 32 MiB
  // together.
  static constexpr std::size_t kSmallBytes = std::size_t{64} << 10U;

  // Fails as Listener::Open does.
  static absl::StatusOr<std::unique_ptr<Server>> Start(std::string_view address, Options options,
                                                       Handler handler);
  ~Server() { Stop(); }

  // Refuses new connections, closes the open connections and waits for the running handlers. The
  // caller must make sure that the handlers end.
  void Stop();

  const Address& address() const { return listener_->address(); }

 private:
  struct Peer {
    Seats::Id id = 0;
    std::shared_ptr<Connection> connection;
    std::thread thread;
    std::atomic<bool> done = false;
    // Used by the thread alone: the caller's name once known, and the deadline of the introduction.
    std::string name = {};
    CondVar::Deadline introduce_by = {};
  };

  Server(std::unique_ptr<Listener> listener, Options options, Handler handler);

  void AcceptLoop();
  void Admit(std::unique_ptr<Connection> connection);
  // Ends the connection that has lost its seat and returns the peer; null when no connection has.
  Peer* EndUnseated(std::optional<Seats::Id> gone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ServePeer(Peer& peer);
  bool ServeCall(Peer& peer, FrameHead head);
  // Names the caller and takes room for the call.
  absl::StatusOr<Room::Hold> Introduced(Peer& peer, const Request& request,
                                        std::size_t payload_bytes);
  absl::Status Seat(Peer& peer, const std::string& name);

  std::unique_ptr<Listener> listener_;
  const Options options_;
  const Handler handler_;
  // With seats there is a second thread per seat, for unseated connections whose thread still runs.
  const std::size_t max_threads_;
  std::thread accept_thread_;
  Mutex mutex_;
  CondVar stopping_;
  std::list<Peer> peers_ ABSL_GUARDED_BY(mutex_);  // the accepting thread alone removes some
  Seats seats_ ABSL_GUARDED_BY(mutex_);
  Seats::Id last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  Room room_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tahoma::wire

// Serves calls: one thread accepts, one thread per connection answers its calls in order.
//
//   absl::StatusOr<std::unique_ptr<Server>> server =
//       Server::Start("unix:/run/tahoma/node.sock", {}, [&](const Request& request) {
//         return node.Serve(request);
//       });
//
// Scope: our own programs' sockets. A connection that sends anything but frames is closed; one that
// sends a header which is no request gets an error reply with id 0 and is closed. Other connections
// are not affected. A frame that has begun must be whole in time.
//
// A socket that strangers reach has Options::introduce, which tells from a call's header whose it
// is, before any of its payload is kept. Then a connection that has not shown who it is has a
// deadline, places for strangers are not taken from known callers (lib/wire/seats.h), and payloads
// and replies have bounds in sum and for each caller (lib/wire/room.h).
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

// Whose call a request is.
struct CallerOf {
  std::string name = {};        // has one share of the server's bounds
  std::size_t reply_bytes = 0;  // the most payload that the reply can have
};

class Server {
 public:
  using Handler = std::function<absl::StatusOr<Reply>(const Request&)>;
  // Tells whose call it is from a request without its payload. A failure is the answer, and the
  // payload is not kept.
  using Introduce = std::function<absl::StatusOr<CallerOf>(const Request& request)>;

  struct Options {
    // Connections beyond these are closed at once. A node has at most 128 claims, each with a few
    // processes.
    std::size_t max_connections = 512;
    // On a unix socket, closes connections at once unless they are from our own user or root.
    bool own_user_only = false;
    // The time for a header whose first byte has come, or for a payload that is not kept, and for a
    // payload that is: at most 64 MiB from a program of the same machine.
    std::chrono::milliseconds head_timeout = std::chrono::seconds(10);
    std::chrono::milliseconds payload_timeout = std::chrono::seconds(30);
    FrameBounds frame = {};
    // Called from many threads. Null: every call is served, and the options below mean nothing.
    Introduce introduce = nullptr;
    // Of max_connections, those of strangers: enough for every pod of a node to begin at once.
    std::size_t max_strangers = 128;
    // The time that a connection has to show who it is; a program does it with its first call.
    std::chrono::milliseconds introduction = std::chrono::seconds(10);
    // The payloads and replies that are held. A call of at most kSmallBytes needs no room.
    Room::Limits room = {.bytes = std::size_t{128} << 20U,
                         .bytes_per_caller = std::size_t{32} << 20U};
  };
  // Such calls never wait behind others': those of all connections together have 32 MiB.
  static constexpr std::size_t kSmallBytes = std::size_t{64} << 10U;

  // Fails as Listener::Open does.
  static absl::StatusOr<std::unique_ptr<Server>> Start(std::string_view address, Options options,
                                                       Handler handler);
  ~Server() { Stop(); }

  // Refuses new connections, closes the open ones and waits for the handlers that are running; the
  // caller must make sure that they end.
  void Stop();

  const Address& address() const { return listener_->address(); }

 private:
  struct Peer {
    Seats::Id id = 0;
    std::shared_ptr<Connection> connection;
    std::thread thread;
    std::atomic<bool> done = false;
    // The thread's own: who it is, once it has shown that, and until when it must.
    std::string name = {};
    CondVar::Deadline introduce_by = {};
  };

  Server(std::unique_ptr<Listener> listener, Options options, Handler handler);

  void AcceptLoop();
  void Admit(std::unique_ptr<Connection> connection);
  // Ends the connection that has lost its seat and returns it; null when none has.
  Peer* EndUnseated(std::optional<Seats::Id> gone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ServePeer(Peer& peer);
  bool ServeCall(Peer& peer, FrameHead head);
  // Checks whose call it is and takes room for it.
  absl::StatusOr<Room::Hold> Introduced(Peer& peer, const Request& request,
                                        std::size_t payload_bytes);
  absl::Status Seat(Peer& peer, const std::string& name);

  std::unique_ptr<Listener> listener_;
  const Options options_;
  const Handler handler_;
  // With seats there is one thread more for each, for those that have lost theirs and still run.
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

// Serves calls: one thread accepts, one thread per connection answers its calls in order.
//
//   absl::StatusOr<std::unique_ptr<Server>> server =
//       Server::Start("unix:/run/tahoma/node.sock", {}, [&](const Request& request) {
//         return node.Serve(request);
//       });
//
// Scope: our own programs' sockets. A connection that sends anything but frames is closed; one that
// sends a header which is no request gets an error reply with id 0 and is closed. Other connections
// are not affected.
//
// Thread safety: the handler is called from many threads at the same time. Stop may be called from
// any thread but a handler's.

#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string_view>
#include <thread>

#include "lib/base/mutex.h"
#include "lib/wire/call.h"
#include "lib/wire/socket.h"

namespace tahoma::wire {

class Server {
 public:
  using Handler = std::function<absl::StatusOr<Reply>(const Request&)>;

  struct Options {
    // Connections beyond these are closed at once. A node has at most 128 claims, each with a few
    // processes.
    std::size_t max_connections = 512;
    // On a unix socket, closes connections at once unless they are from our own user or root.
    bool own_user_only = false;
  };

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
    std::shared_ptr<Connection> connection;
    std::thread thread;
    std::atomic<bool> done = false;
  };

  Server(std::unique_ptr<Listener> listener, Options options, Handler handler)
      : listener_(std::move(listener)), options_(options), handler_(std::move(handler)) {}

  void AcceptLoop();
  void Admit(std::unique_ptr<Connection> connection);
  void ServePeer(Connection& connection);

  std::unique_ptr<Listener> listener_;
  const Options options_;
  const Handler handler_;
  std::thread accept_thread_;
  Mutex mutex_;
  CondVar stopping_;
  std::list<Peer> peers_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tahoma::wire

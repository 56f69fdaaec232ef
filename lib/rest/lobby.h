// All open connections. A connection is with a thread, or waits in the lobby for its socket.
//
// Scope: the next connection to serve. lib/rest/connection.h serves a connection.
//
// Thread safety: any thread. A thread that took a connection is its only user until Wait or Remove.

#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/rest/connection.h"

namespace tahoma::rest {

using ConnectionPtr = std::shared_ptr<Connection>;

class Lobby {
 public:
  // Selects the connections that may be closed to make room.
  struct Choice {
    const std::string* client = nullptr;  // of this client only
    bool holding = false;                 // with bytes only
  };

  Lobby() = default;
  ~Lobby();
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;

  // kResourceExhausted when there are no descriptors left.
  absl::Status Open();
  int epoll() const { return epoll_; }

  void Add(ConnectionPtr connection);
  // False after Close; the caller keeps the connection.
  bool Wait(const Connection& connection);
  // Nothing when the connection is with a thread, or gone.
  ConnectionPtr Pop(int fd);
  void Remove(const Connection& connection);

  // Whether no connection is open, here or with a thread.
  bool empty() const;
  // Takes the waiting connections with a passed deadline.
  std::vector<ConnectionPtr> PopLate(MonotonicTime now);
  // Takes at most `most` waiting connections: first connections in the midst of a request or an
  // answer, the oldest first; then idle connections.
  std::vector<ConnectionPtr> PopOldest(std::size_t most, Choice choice);
  // Takes all waiting connections; later connections are not kept.
  std::vector<ConnectionPtr> Close();
  // False when connections are left after this time.
  bool WaitUntilEmpty(std::chrono::milliseconds time);
  // Ends every wait of the connections' threads.
  void CutAll();

 private:
  struct Entry {
    ConnectionPtr connection;
    bool waits = false;
    bool known = false;  // to epoll
  };

  int epoll_ = -1;
  mutable Mutex mutex_;
  CondVar empty_;
  std::unordered_map<int, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tahoma::rest

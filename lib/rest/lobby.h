// All open connections; each is with a thread, or in the lobby, where it waits for its socket.
//
// Scope: which connection is served next. lib/rest/connection.h says what a connection does then.
//
// Thread safety: every member may be called from any thread. A thread that was given a connection
// is its only user until Wait or Remove.

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
  // Nothing when that connection is with a thread already, or gone.
  ConnectionPtr Take(int fd);
  void Remove(const Connection& connection);

  // Whether no connection is open, here or with a thread.
  bool empty() const;
  // Takes the connections that wait and whose deadline has passed.
  std::vector<ConnectionPtr> TakeLate(MonotonicTime now);
  // Takes at most `most` of the connections that wait: first those in the midst of a request or an
  // answer, the oldest first; then the idle ones.
  std::vector<ConnectionPtr> TakeOldest(std::size_t most, Choice choice);
  // Takes all connections that wait; later ones are not kept.
  std::vector<ConnectionPtr> Close();
  // False when connections are left after that time.
  bool WaitUntilEmpty(std::chrono::milliseconds time);
  // Ends what the connections' threads wait for.
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

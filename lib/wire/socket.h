// Blocking stream endpoints that carry frames, over a unix socket or TCP.
//
//   absl::StatusOr<std::unique_ptr<Listener>> listener = Listener::Open("unix:/run/node.sock");
//   absl::StatusOr<std::unique_ptr<Connection>> peer = (*listener)->Accept();
//   absl::StatusOr<Frame> frame = (*peer)->Receive();
//
//   absl::StatusOr<std::unique_ptr<Connection>> dialled = Connection::Dial("127.0.0.1:4242", 1s);
//   absl::Status sent = (*dialled)->Send({.header = "{}"});
//
// Who is at the other end: of a unix socket the kernel knows its user (peer_user), over TCP TLS
// proves a name (StartTls, Proves).
//
// Addresses: "unix:/absolute/path" (or the bare path) or "host:port" ("[::1]:port" for IPv6); port
// 0 binds any.
//
// Scope: the one place that touches sockets of our own protocol (cpp-httplib knows no unix
// sockets). What the frames mean is call.h.
//
// Thread safety: Send, Receive and Shutdown may be called from different threads at the same time;
// concurrent Sends are put in some order, and only one thread may be in Receive. Accept belongs to
// one thread, Close may come from any.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/mutex.h"
#include "lib/wire/frame.h"
#include "lib/wire/tls.h"

namespace tahoma::wire {

inline constexpr std::chrono::milliseconds kForever = std::chrono::milliseconds::max();
// sizeof(sockaddr_un::sun_path) less the closing zero, unix(7).
inline constexpr std::size_t kMaxUnixPathBytes = 107;

// A parsed address.
struct Address {
  std::string path;  // set for a unix socket
  std::string host;  // set for TCP
  std::uint16_t port = 0;

  bool is_unix() const { return !path.empty(); }
  std::string ToString() const;
};

// kInvalidArgument says what is wrong: no port, port above 65535, a relative or too long path.
absl::StatusOr<Address> ParseAddress(std::string_view text);

class Connection {
 public:
  // kUnavailable when nobody listens, kDeadlineExceeded when `timeout` ran out.
  static absl::StatusOr<std::unique_ptr<Connection>> Dial(std::string_view address,
                                                          std::chrono::milliseconds timeout);
  // Takes ownership of a connected, stream-oriented file descriptor.
  Connection(int fd, std::string peer);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Writes the whole frame. After a failure other than kInvalidArgument (frame too large, nothing
  // sent) the connection is shut down.
  absl::Status Send(const Frame& frame, std::chrono::milliseconds timeout = kForever);

  // Waits for a whole frame. kUnavailable when the peer closed or Shutdown was called;
  // kInvalidArgument when the peer does not speak our protocol. kDeadlineExceeded leaves the
  // connection usable only if not a byte of the frame had come; otherwise it is shut down.
  absl::StatusOr<Frame> Receive(std::chrono::milliseconds timeout = kForever);

  // Before the first frame, and from one thread: both ends show their certificates.
  // kUnauthenticated when the peer has none that the authority has signed, or speaks no TLS; the
  // connection is shut down then. A client hears of the server's refusal only when it reads.
  absl::Status StartTls(const Tls& tls, TlsRole role, std::chrono::milliseconds timeout);
  // Whether the peer holds the key of a certificate for that name. False without TLS.
  bool Proves(std::string_view name) const;
  // Who opened the other end of a unix socket; nothing over TCP.
  std::optional<uid_t> peer_user() const;

  // Ends both directions and wakes whoever waits. May be called more than once.
  void Shutdown();

  // False after a failure, after Shutdown, or once the peer has closed its side.
  bool usable() const;
  const std::string& peer() const { return peer_; }

 private:
  // As send(2) and recv(2): with EAGAIN they say for what to wait (poll(2)).
  ssize_t Write(std::string_view bytes, short& wait_for);
  ssize_t Read(char* bytes, std::size_t most, short& wait_for);
  // `done` is what a call to OpenSSL returned.
  ssize_t TlsResult(int done, short& wait_for) ABSL_EXCLUSIVE_LOCKS_REQUIRED(tls_mutex_);
  absl::Status WriteAll(std::string_view bytes, std::chrono::nanoseconds deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_mutex_);
  absl::Status ReadAppend(std::string& out, std::size_t bytes, std::chrono::nanoseconds deadline);

  const int fd_;
  const std::string peer_;
  // Held for as long as one call that does not block.
  mutable Mutex tls_mutex_;
  // Set before the connection is shared, if at all.
  SslSession tls_ ABSL_PT_GUARDED_BY(tls_mutex_);
  Mutex send_mutex_;  // one frame at a time
  std::atomic<bool> broken_ = false;
};

// Over a unix socket: whether it was opened by this program's user, or by root, who may do what it
// likes anyway. False over TCP.
bool IsOwnUser(const Connection& connection);

class Listener {
 public:
  // A socket file that nobody answers on is removed first. kAlreadyExists when somebody does;
  // kFailedPrecondition when the path is no socket (it is left alone).
  static absl::StatusOr<std::unique_ptr<Listener>> Open(std::string_view address);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // kUnavailable after Close, kDeadlineExceeded when nobody came.
  absl::StatusOr<std::unique_ptr<Connection>> Accept(std::chrono::milliseconds timeout = kForever);

  // Wakes Accept; removes the socket file if it is still the one this listener made.
  void Close();

  // With the port that was bound.
  const Address& address() const { return address_; }

 private:
  Listener(int fd, Address address);

  const int fd_;
  Address address_;
  std::uint64_t device_ = 0;  // of the socket file, so that a successor's file is never removed
  std::uint64_t inode_ = 0;
  std::atomic<bool> closed_ = false;
};

}  // namespace tahoma::wire

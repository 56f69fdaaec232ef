// Blocking stream endpoints that carry frames, over a unix socket or TCP.
//
//   absl::StatusOr<std::unique_ptr<Listener>> listener = Listener::Open("unix:/run/node.sock");
//   absl::StatusOr<std::unique_ptr<Connection>> peer = (*listener)->Accept();
//   absl::StatusOr<Frame> frame = (*peer)->Receive();
//
//   absl::StatusOr<std::unique_ptr<Connection>> dialled = Connection::Dial("127.0.0.1:4242", 1s);
//   absl::Status sent = (*dialled)->Send({.header = "{}"});
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

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "lib/wire/frame.h"

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

  // Ends both directions and wakes whoever waits. May be called more than once.
  void Shutdown();

  // False after a failure, after Shutdown, or once the peer has closed its side.
  bool usable() const;
  const std::string& peer() const { return peer_; }

 private:
  absl::Status WriteAll(std::string_view bytes, std::chrono::nanoseconds deadline);
  absl::Status ReadAppend(std::string& out, std::size_t bytes, std::chrono::nanoseconds deadline);

  const int fd_;
  const std::string peer_;
  std::mutex send_mutex_;
  std::atomic<bool> broken_ = false;
};

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

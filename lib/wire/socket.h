// Blocking stream endpoints that carry frames, over a unix socket or TCP.
//
//   absl::StatusOr<std::unique_ptr<Listener>> listener = Listener::Open("unix:/run/node.sock");
//   absl::StatusOr<std::unique_ptr<Connection>> peer = (*listener)->Accept();
//   absl::StatusOr<Frame> frame = (*peer)->Receive();
//
//   absl::StatusOr<std::unique_ptr<Connection>> dialled = Connection::Dial("127.0.0.1:4242", 1s);
//   absl::Status sent = (*dialled)->Send({.header = "{}"});
//
// A server that must know a peer before it spends memory reads in two steps: the header, then the
// payload, or skips the payload.
//
//   absl::StatusOr<FrameHead> head = (*peer)->ReceiveHead({.header_bytes = 4096}, kForever, 10s);
//   absl::StatusOr<std::string> payload = (*peer)->ReceivePayload(head->payload_bytes, 30s);
//
// A unix socket identifies the peer by its user, as the kernel reports the user (peer_user). TCP
// with TLS identifies the peer by the name in its certificate (StartTls, Proves).
//
// Addresses: "unix:/absolute/path" (or the bare path) or "host:port" ("[::1]:port" for IPv6); port
// 0 binds any.
//
// Scope: the only place that touches sockets of our own protocol. call.h says what the frames mean.
//
// Thread safety: Send, Receive and Shutdown may be called from different threads at the same time.
// Concurrent Sends are put in some order; only one thread may be in Receive or one of its steps.
// Accept belongs to one thread, Close may be called from any.

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
// sizeof(sockaddr_un::sun_path) less the terminating zero byte, unix(7).
inline constexpr std::size_t kMaxUnixPathBytes = 107;

// A parsed address.
struct Address {
  std::string path;  // set for a unix socket
  std::string host;  // set for TCP
  std::uint16_t port = 0;

  bool is_unix() const { return !path.empty(); }
  std::string ToString() const;
};

// kInvalidArgument names the mistake: no port, a port above 65535, a relative path, or a path or
// host that is too long.
absl::StatusOr<Address> ParseAddress(std::string_view text);

// The beginning of a frame whose payload is still to be received.
struct FrameHead {
  std::string header = {};
  std::size_t payload_bytes = 0;
};

class Connection {
 public:
  // Connects to `address`. kInvalidArgument as ParseAddress, kUnavailable when no program listens
  // there or the host has no address, kResourceExhausted without file descriptors,
  // kDeadlineExceeded after `timeout`.
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
  // kInvalidArgument when the peer does not speak our protocol. After kDeadlineExceeded without any
  // byte of the frame the connection stays usable; after any other failure the connection is shut
  // down.
  absl::StatusOr<Frame> Receive(std::chrono::milliseconds timeout = kForever);

  // Receive in steps. ReceiveHead waits `idle` for the first byte of a frame and then `timeout` for
  // the rest of the header; fails as Receive does, and with kInvalidArgument for a frame over
  // `bounds`. Then the caller calls exactly one of ReceivePayload and SkipPayload with the
  // payload_bytes of the head, even when 0; both end the connection when bytes are missing after
  // `timeout`. SkipPayload drops the bytes as they arrive.
  absl::StatusOr<FrameHead> ReceiveHead(const FrameBounds& bounds, std::chrono::milliseconds idle,
                                        std::chrono::milliseconds timeout);
  absl::StatusOr<std::string> ReceivePayload(std::size_t bytes, std::chrono::milliseconds timeout);
  absl::Status SkipPayload(std::size_t bytes, std::chrono::milliseconds timeout);

  // Makes the TLS handshake, in which both ends show their certificates; call before the first
  // frame, from one thread. kUnauthenticated when the peer speaks no TLS or has no certificate
  // signed by the authority; the connection is then shut down. A client learns about a refusal of
  // its certificate only when it reads.
  absl::Status StartTls(const Tls& tls, TlsRole role, std::chrono::milliseconds timeout);
  // Whether the peer has shown a certificate for this name. False without TLS.
  bool Proves(std::string_view name) const;
  // Returns the user that opened the other end of a unix socket; nullopt over TCP.
  std::optional<uid_t> peer_user() const;

  // Ends both directions and wakes the threads that wait in Send and Receive. May be called again.
  void Shutdown();

  // False after a failure, after Shutdown, or once the peer has closed its side.
  bool usable() const;
  const std::string& peer() const { return peer_; }

 private:
  // Return as send(2) and recv(2); with EAGAIN, `wait_for` is the poll(2) event to wait for.
  ssize_t Write(std::string_view bytes, short& wait_for);
  ssize_t Read(char* bytes, std::size_t most, short& wait_for);
  // Translates `done`, the result of a call to OpenSSL, into the result of send(2) or recv(2).
  ssize_t TlsResult(int done, short& wait_for) ABSL_EXCLUSIVE_LOCKS_REQUIRED(tls_mutex_);
  absl::Status WriteAll(std::string_view bytes, std::chrono::nanoseconds deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_mutex_);
  // Receives a head whose first byte comes by `first_by` and the rest within `rest`; the head must
  // be whole by `whole_by` in any case.
  absl::StatusOr<FrameHead> ReadHead(const FrameBounds& bounds, std::chrono::nanoseconds first_by,
                                     std::chrono::milliseconds rest,
                                     std::chrono::nanoseconds whole_by);
  absl::StatusOr<std::string> ReadPayload(std::size_t bytes, std::chrono::nanoseconds deadline);
  // Appends at least one byte and at most `most`.
  absl::Status ReadSome(std::string& out, std::size_t most, std::chrono::nanoseconds deadline);
  // Appends exactly that many bytes.
  absl::Status ReadAppend(std::string& out, std::size_t bytes, std::chrono::nanoseconds deadline);

  const int fd_;
  const std::string peer_;
  // Held for a call to OpenSSL; the call does not block.
  mutable Mutex tls_mutex_;
  // Set by StartTls, before threads share the connection; nullptr without TLS.
  SslSession tls_ ABSL_PT_GUARDED_BY(tls_mutex_);
  Mutex send_mutex_;  // one frame at a time
  std::atomic<bool> broken_ = false;
};

// Whether the other end of a unix socket was opened by this program's user or by root, whom no
// check could stop. False over TCP.
bool IsOwnUser(const Connection& connection);

class Listener {
 public:
  // Listens on `address`. A socket file without a program behind is removed first. kAlreadyExists
  // when a program answers there or the port is taken; kFailedPrecondition when the path is another
  // kind of file (left alone) or cannot be bound; kUnavailable when the host has no address;
  // kInvalidArgument as ParseAddress.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(std::string_view address);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Waits for a connection. kUnavailable after Close, kDeadlineExceeded when none came in time,
  // kResourceExhausted when the process is out of file descriptors or memory: try again later.
  absl::StatusOr<std::unique_ptr<Connection>> Accept(std::chrono::milliseconds timeout = kForever);

  // Wakes Accept and removes the socket file, unless another listener has replaced the file.
  void Close();

  // Returns the address with the bound port.
  const Address& address() const { return address_; }

 private:
  Listener(int fd, Address address);

  const int fd_;
  Address address_;
  std::uint64_t device_ = 0;  // of the socket file: a successor's file is never removed
  std::uint64_t inode_ = 0;
  std::atomic<bool> closed_ = false;
};

}  // namespace tahoma::wire

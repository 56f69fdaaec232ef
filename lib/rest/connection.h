// One accepted socket, plain or TLS, with buffers both ways.
//
// httplib's own stream uses select(2), which cannot take descriptors from 1,024 on, reads byte by
// byte from the kernel's view of a line, and writes head and body apart; this one polls, buffers,
// enforces the bounds of a request and sends an answer in one piece.
//
// Scope: bytes, time-outs and bounds of one connection.
//
// Thread safety: none; a connection belongs to one thread at a time. Cut is the exception.

#pragma once

#include <openssl/ssl.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "lib/base/clock.h"
#include "lib/rest/message.h"

namespace tahoma::rest {

class Connection final {
 public:
  struct Limits {
    std::size_t header_bytes = 0;
    std::size_t body_bytes = 0;
    std::chrono::milliseconds request_timeout{};
    std::chrono::milliseconds write_timeout{};
  };
  // Why reading a request ended early.
  enum class Trouble { kNone, kClosed, kTimeout, kHeaderTooLarge, kBodyTooLarge };

  // Takes over the non-blocking socket. `tls` may be null.
  Connection(int fd, SSL_CTX* tls, std::string peer, Limits limits);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // True when the connection is ready for requests: plain, or the TLS handshake ended.
  bool Handshake();
  // Resets the bounds for the next request.
  void BeginRequest();
  // From here on the bytes read are a body.
  void BeginBody() { in_body_ = true; }
  bool in_body() const { return in_body_; }
  // Sends what was written. False when the peer has gone or took nothing for the write time-out.
  bool Flush();
  // Waits for the first byte of a request.
  bool WaitReadable(std::chrono::milliseconds wait);
  // Ends the sending side and drops what still arrives, for a moment: closing a socket with unread
  // bytes resets it, and the peer would never see why its request was refused.
  void LetPeerRead();
  // The peer closed or reset the connection, as far as the kernel knows.
  bool PeerHasGone() const;
  // Ends all waiting of the thread that owns the connection; any thread may call it.
  void Cut() const;

  int fd() const { return fd_; }
  bool read_any() const { return request_bytes_ > 0; }
  Trouble trouble() const { return trouble_; }
  const std::string& peer() const { return peer_; }
  bool is_tls() const { return ssl_ != nullptr; }
  const std::optional<ClientSubject>& client() const { return client_; }

  // Bytes of a request, -1 when there are no more (`trouble` says why) and 0 at the peer's end.
  ssize_t Read(char* to, std::size_t size) {
    // httplib takes the head byte by byte.
    const bool is_there = in_used_ < in_end_ && trouble_ == Trouble::kNone;
    if (size != 1 || !is_there || in_body_ || request_bytes_ >= limits_.header_bytes) {
      return ReadSome(to, size);
    }
    *to = in_[in_used_++];
    ++request_bytes_;
    return 1;
  }
  // Bytes of an answer, kept until Flush; -1 when the connection is broken.
  ssize_t Write(const char* from, std::size_t size);
  bool is_broken() const { return broken_; }

 private:
  using Deadline = MonotonicTime;

  bool Poll(short events, Deadline deadline) const;
  // Bytes read now; 0 = closed; -1 = would block (`wants` says what to wait for); -2 = broken.
  ssize_t TryRead(char* to, std::size_t size, short& wants);
  ssize_t TryWrite(const char* from, std::size_t size, short& wants);
  ssize_t TlsResult(int result, short& wants);
  bool Fill();
  ssize_t ReadSome(char* to, std::size_t size);

  const int fd_;
  const std::string peer_;
  const Limits limits_;
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  std::unique_ptr<SSL, FreeSsl> ssl_;
  bool handshake_done_ = false;
  std::optional<ClientSubject> client_;

  std::string in_;  // of which what was read and not yet taken is from in_used_ to in_end_
  std::size_t in_used_ = 0;
  std::size_t in_end_ = 0;
  std::string out_;
  bool broken_ = false;

  bool in_body_ = false;
  std::size_t request_bytes_ = 0;
  std::size_t body_bytes_ = 0;
  Deadline deadline_{};
  Trouble trouble_ = Trouble::kNone;
};

}  // namespace tahoma::rest

#include "lib/rest/connection.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/rest/tls.h"

namespace tahoma::rest {
namespace {

constexpr std::size_t kReadBytes = 16 << 10;
constexpr std::size_t kWriteBytes = 64 << 10;
// Chunk sizes and line ends of a chunked body, above its own bytes.
constexpr std::size_t kFramingBytes = 64 << 10;
constexpr auto kFarewell = std::chrono::milliseconds(500);
constexpr ssize_t kWouldBlock = -1;
constexpr ssize_t kBroken = -2;

// Sockets wait in real time.
MonotonicTime Now() { return SystemClock().MonotonicNow(); }

}  // namespace

Connection::Connection(int fd, SSL_CTX* tls, std::string peer, Limits limits)
    : fd_(fd), peer_(std::move(peer)), limits_(limits) {
  if (tls == nullptr) {
    handshake_done_ = true;
    return;
  }
  ssl_.reset(SSL_new(tls));
  if (!ssl_ || SSL_set_fd(ssl_.get(), fd_) != 1) broken_ = true;
  if (ssl_) SSL_set_accept_state(ssl_.get());
}

Connection::~Connection() {
  if (ssl_ && handshake_done_ && !broken_) SSL_shutdown(ssl_.get());
  ERR_clear_error();
  ::close(fd_);
}

bool Connection::Poll(short events, Deadline deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Now()).count();
    pollfd entry{.fd = fd_, .events = events, .revents = 0};
    const int ready =
        ::poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

ssize_t Connection::TlsResult(int result, short& wants) {
  const int error = SSL_get_error(ssl_.get(), result);
  ERR_clear_error();
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    wants = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    return kWouldBlock;
  }
  if (error == SSL_ERROR_ZERO_RETURN) return 0;
  return kBroken;
}

ssize_t Connection::TryRead(char* to, std::size_t size, short& wants) {
  wants = POLLIN;
  if (ssl_) {
    const int got = SSL_read(ssl_.get(), to, static_cast<int>(size));
    return got > 0 ? got : TlsResult(got, wants);
  }
  for (;;) {
    const ssize_t got = ::recv(fd_, to, size, 0);
    if (got >= 0) return got;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK ? kWouldBlock : kBroken;
  }
}

ssize_t Connection::TryWrite(const char* from, std::size_t size, short& wants) {
  wants = POLLOUT;
  if (ssl_) {
    const int sent = SSL_write(ssl_.get(), from, static_cast<int>(std::min(size, kWriteBytes)));
    return sent > 0 ? sent : TlsResult(sent, wants);
  }
  for (;;) {
    const ssize_t sent = ::send(fd_, from, size, MSG_NOSIGNAL);
    if (sent >= 0) return sent;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK ? kWouldBlock : kBroken;
  }
}

bool Connection::Handshake() {
  if (handshake_done_) return true;
  if (broken_) return false;
  const Deadline deadline = Now() + limits_.request_timeout;
  for (;;) {
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1) break;
    short wants = 0;
    if (TlsResult(result, wants) != kWouldBlock || !Poll(wants, deadline)) {
      broken_ = true;
      return false;
    }
  }
  handshake_done_ = true;
  client_ = SubjectOf(*ssl_);
  return true;
}

void Connection::BeginRequest() {
  in_body_ = false;
  request_bytes_ = 0;
  body_bytes_ = 0;
  trouble_ = Trouble::kNone;
  deadline_ = Now() + limits_.request_timeout;
}

bool Connection::Fill() {
  // A client may wait for an answer ("100 Continue") before it goes on.
  if (!Flush()) return false;
  in_.resize(kReadBytes);
  in_used_ = in_end_ = 0;
  for (;;) {
    short wants = 0;
    const ssize_t got = TryRead(in_.data(), in_.size(), wants);
    if (got > 0) {
      in_end_ = static_cast<std::size_t>(got);
      return true;
    }
    if (got == kWouldBlock && Poll(wants, deadline_)) continue;
    trouble_ = got == kWouldBlock ? Trouble::kTimeout : Trouble::kClosed;
    return false;
  }
}

ssize_t Connection::ReadSome(char* to, std::size_t size) {
  if (trouble_ != Trouble::kNone) return -1;
  const std::size_t bound = in_body_ ? limits_.body_bytes + kFramingBytes : limits_.header_bytes;
  std::size_t& used = in_body_ ? body_bytes_ : request_bytes_;
  if (used >= bound) {
    trouble_ = in_body_ ? Trouble::kBodyTooLarge : Trouble::kHeaderTooLarge;
    return -1;
  }
  if (in_used_ == in_end_ && !Fill()) return trouble_ == Trouble::kClosed ? 0 : -1;
  const std::size_t taken = std::min({size, in_end_ - in_used_, bound - used});
  std::memcpy(to, in_.data() + in_used_, taken);
  in_used_ += taken;
  used += taken;
  return static_cast<ssize_t>(taken);
}

ssize_t Connection::Write(const char* from, std::size_t size) {
  if (broken_) return -1;
  out_.append(from, size);
  if (out_.size() >= kWriteBytes && !Flush()) return -1;
  return static_cast<ssize_t>(size);
}

bool Connection::Flush() {
  std::size_t sent = 0;
  Deadline deadline = Now() + limits_.write_timeout;
  while (!broken_ && sent < out_.size()) {
    short wants = 0;
    const ssize_t now = TryWrite(out_.data() + sent, out_.size() - sent, wants);
    if (now > 0) {
      sent += static_cast<std::size_t>(now);
      deadline = Now() + limits_.write_timeout;
    } else if (now != kWouldBlock || !Poll(wants, deadline)) {
      broken_ = true;
    }
  }
  out_.clear();
  if (out_.capacity() > 2 * kWriteBytes) out_.shrink_to_fit();
  return !broken_;
}

bool Connection::WaitReadable(std::chrono::milliseconds wait) {
  if (in_used_ < in_end_) return true;
  if (ssl_ && SSL_pending(ssl_.get()) > 0) return true;
  return Poll(POLLIN, Now() + wait);
}

void Connection::LetPeerRead() {
  if (ssl_) SSL_shutdown(ssl_.get());
  broken_ = true;
  ::shutdown(fd_, SHUT_WR);
  const Deadline deadline = Now() + kFarewell;
  in_.resize(kReadBytes);
  while (Now() < deadline && Poll(POLLIN, deadline)) {
    if (::recv(fd_, in_.data(), in_.size(), 0) <= 0) return;
  }
}

bool Connection::PeerHasGone() const {
  pollfd entry{.fd = fd_, .events = POLLRDHUP, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

void Connection::Cut() const { ::shutdown(fd_, SHUT_RDWR); }

}  // namespace tahoma::rest

#include "lib/rest/connection.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "lib/rest/tls.h"

namespace tahoma::rest {
namespace {

constexpr std::size_t kReadBytes = 32 << 10;
constexpr std::size_t kWriteBytes = 64 << 10;
// The bytes that a connection may move before other connections get their turn.
constexpr std::size_t kTurnBytes = 512 << 10;
constexpr auto kFarewell = std::chrono::milliseconds(500);
constexpr ssize_t kWouldBlock = -1;
constexpr ssize_t kBroken = -2;

std::chrono::milliseconds TimeFor(std::size_t bytes, std::size_t rate) {
  return std::chrono::milliseconds(rate == 0 ? 0 : 1000 * bytes / rate);
}

}  // namespace

Connection::Connection(int fd, SSL_CTX* tls, std::string peer, std::unique_ptr<Budget::Share> share,
                       Limits limits)
    : fd_(fd),
      peer_(std::move(peer)),
      share_(std::move(share)),
      limits_(limits),
      since_(Now()),
      parser_(limits.request) {
  if (tls == nullptr) return;
  phase_ = Phase::kGreeting;
  ssl_.reset(SSL_new(tls));
  if (!ssl_ || SSL_set_fd(ssl_.get(), fd_) != 1) broken_ = true;
  if (ssl_) SSL_set_accept_state(ssl_.get());
}

Connection::~Connection() {
  if (ssl_ && phase_ != Phase::kGreeting && !broken_) SSL_shutdown(ssl_.get());
  ERR_clear_error();
  ::close(fd_);
}

void Connection::Enter(Phase phase) {
  phase_ = phase;
  since_ = progress_ = Now();
  wants_.now = phase == Phase::kAnswering ? POLLOUT : POLLIN;
}

MonotonicTime Connection::deadline() const {
  switch (phase_) {
    case Phase::kGreeting:
      return since_ + limits_.request_timeout;
    case Phase::kReceiving:
      if (is_idle()) return since_ + limits_.keep_alive;
      return since_ + limits_.request_timeout +
             TimeFor(parser_.request().body.size(), limits_.least_rate);
    case Phase::kAnswering:
      return std::min(
          progress_ + limits_.write_timeout,
          since_ + limits_.write_timeout + TimeFor(sent_before_ + sent_, limits_.least_rate));
    case Phase::kLeaving:
      return since_ + kFarewell;
  }
  return since_;
}

std::size_t Connection::held_bytes() const {
  return in_.size() + parser_.held_bytes() + out_.size();
}

Connection::Turn Connection::Proceed() {
  Turn turn = Turn::kReady;
  if (broken_) return Turn::kGone;
  for (Phase before = phase_;; before = phase_) {
    switch (phase_) {
      case Phase::kGreeting:
        turn = Greet();
        break;
      case Phase::kReceiving:
        turn = Receive();
        break;
      case Phase::kAnswering:
        turn = SendSome();
        break;
      case Phase::kLeaving:
        turn = Leave();
        break;
    }
    if (broken_) return Turn::kGone;
    if (phase_ == before) return turn;
  }
}

Connection::Turn Connection::Greet() {
  const int result = SSL_do_handshake(ssl_.get());
  if (result != 1) return TlsResult(result) == kWouldBlock ? Turn::kWait : Turn::kGone;
  client_ = SubjectOf(*ssl_);
  Enter(Phase::kReceiving);
  return Turn::kWait;
}

Connection::Turn Connection::Receive() {
  using State = RequestParser::State;
  std::size_t turn_bytes = 0;
  for (;;) {
    const bool had_begun = parser_.has_begun();
    in_.erase(0, parser_.Consume(in_));
    if (in_.empty() && in_.capacity() > kReadBytes) in_.shrink_to_fit();
    if (parser_.has_begun() && !had_begun) since_ = Now();
    if (parser_.state() != State::kHead && parser_.state() != State::kBody) return Turn::kReady;
    // TLS may hold bytes that the socket no longer shows.
    const bool hidden = ssl_ && SSL_pending(ssl_.get()) > 0;
    if (turn_bytes >= kTurnBytes && !hidden) return Turn::kWait;
    // Sends a "100 Continue" for which there was no room.
    if (sent_ < out_.size() && SendSome() == Turn::kGone) return Turn::kGone;
    std::array<char, kReadBytes> bytes;
    const ssize_t got = TryRead(bytes.data(), bytes.size());
    if (got == kWouldBlock) return Turn::kWait;
    if (got <= 0) return Turn::kGone;
    turn_bytes += static_cast<std::size_t>(got);
    const std::string_view read(bytes.data(), static_cast<std::size_t>(got));
    const bool begins = !parser_.has_begun();
    in_ = read.substr(parser_.Consume(read));
    if (begins) since_ = Now();
  }
}

Connection::Body::~Body() {
  try {
    if (closed) closed();
  } catch (...) {  // the answer has been given all the same
  }
}

void Connection::Begin(std::string_view head, bool keep) {
  out_.erase(0, std::exchange(sent_, 0));
  out_ += head;
  sent_before_ = 0;
  keep_ = keep;
  served_ = true;
  parser_.Reset();
  Enter(Phase::kAnswering);
}

void Connection::Answer(std::string_view head, std::string body, bool keep) {
  Begin(head, keep);
  if (body.size() <= kLargeAnswerBytes) {
    out_ += body;
  } else {
    out_body_ = std::move(body);
  }
}

void Connection::Answer(std::string_view head, StreamSource source, std::function<void()> closed,
                        std::size_t length, bool keep) {
  Begin(head, keep);
  body_ = std::make_unique<Body>(std::move(source), std::move(closed), length);
  if (length == 0) body_.reset();
}

// Takes the next bytes of a streamed body; false at the end. A source that throws, or gives too
// many bytes or none, breaks the connection, because the reader must not take a part for the whole.
bool Connection::Refill() {
  if (body_ == nullptr) return false;
  sent_before_ += std::exchange(sent_, 0);
  out_.clear();
  out_body_ = std::string();
  try {
    body_->source(out_, std::chrono::milliseconds(0));
  } catch (...) {
    out_.clear();
  }
  broken_ = out_.empty() || out_.size() > body_->left;
  body_->left -= std::min(out_.size(), body_->left);
  if (broken_ || body_->left == 0) body_.reset();
  return !broken_;
}

void Connection::Continue() { out_ += "HTTP/1.1 100 Continue\r\n\r\n"; }

// Sends the bytes that Answer and Continue have queued.
Connection::Turn Connection::SendSome() {
  for (std::size_t turn_bytes = 0; sent_ < out_.size() + out_body_.size() || Refill();) {
    const bool in_body = sent_ >= out_.size();
    const std::string_view rest = in_body ? std::string_view(out_body_).substr(sent_ - out_.size())
                                          : std::string_view(out_).substr(sent_);
    const ssize_t now = TryWrite(rest);
    if (now == kWouldBlock) return Turn::kWait;
    if (now <= 0) {
      broken_ = true;
      return Turn::kGone;
    }
    sent_ += static_cast<std::size_t>(now);
    turn_bytes += static_cast<std::size_t>(now);
    progress_ = Now();
    if (turn_bytes >= kTurnBytes) return Turn::kWait;
  }
  if (broken_) return Turn::kGone;
  sent_ = 0;
  out_.clear();
  if (out_.capacity() > kLargeAnswerBytes) out_.shrink_to_fit();
  out_body_ = std::string();
  share_->HoldAnswer(0);
  if (phase_ != Phase::kAnswering) return Turn::kWait;
  Enter(keep_ ? Phase::kReceiving : Phase::kLeaving);
  if (keep_) return Turn::kWait;
  // Closing a socket with unread bytes resets the connection, and the peer would never see the
  // answer. So this side ends sending, and drops arriving bytes for a moment.
  if (ssl_) SSL_shutdown(ssl_.get());
  ERR_clear_error();
  ::shutdown(fd_, SHUT_WR);
  return Turn::kWait;
}

Connection::Turn Connection::Leave() {
  std::array<char, kReadBytes> bytes;
  for (std::size_t turn_bytes = 0; turn_bytes < kTurnBytes;) {
    const ssize_t got = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Turn::kWait;
    if (got <= 0) {
      broken_ = true;
      return Turn::kGone;
    }
    turn_bytes += static_cast<std::size_t>(got);
  }
  return Turn::kWait;
}

bool Connection::SendRest() {
  while (phase_ == Phase::kAnswering) {
    if (SendSome() == Turn::kGone) return false;
    if (phase_ == Phase::kAnswering && !Poll(wants_.now, deadline())) return false;
  }
  return true;
}

bool Connection::Send(std::string_view bytes) {
  const MonotonicTime begun = Now();
  MonotonicTime progress = begun;
  for (std::size_t sent = 0; !broken_ && sent < bytes.size();) {
    const ssize_t now = TryWrite(bytes.substr(sent));
    if (now > 0) {
      sent += static_cast<std::size_t>(now);
      progress = Now();
      continue;
    }
    const MonotonicTime until =
        limits_.write_timeout + std::min(progress, begun + TimeFor(sent, limits_.least_rate));
    broken_ = now != kWouldBlock || !Poll(wants_.now, until);
  }
  return !broken_;
}

bool Connection::Read(std::string& out) {
  if (!in_.empty()) {
    out += std::exchange(in_, {});
    return true;
  }
  std::array<char, kReadBytes> bytes;
  const ssize_t got = TryRead(bytes.data(), bytes.size());
  wants_.read = wants_.now;
  if (got > 0) out.append(bytes.data(), static_cast<std::size_t>(got));
  return got > 0 || got == kWouldBlock;
}

std::optional<std::size_t> Connection::Write(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const ssize_t sent = TryWrite(bytes);
  wants_.write = wants_.now;
  if (sent == kWouldBlock) return 0;
  if (sent <= 0) return std::nullopt;
  return static_cast<std::size_t>(sent);
}

void Connection::Wait(short events, std::span<pollfd> others,
                      std::chrono::milliseconds wait) const {
  std::vector<pollfd> entries = {{.fd = -1, .events = 0, .revents = 0}};
  if ((events & POLLIN) != 0) entries[0].events |= wants_.read;
  if ((events & POLLOUT) != 0) entries[0].events |= wants_.write;
  if (entries[0].events != 0) entries[0].fd = fd_;
  // TLS may hold bytes that the socket no longer shows.
  const bool hidden = !in_.empty() || (ssl_ && SSL_pending(ssl_.get()) > 0);
  entries.insert(entries.end(), others.begin(), others.end());
  const int timeout = hidden && (events & POLLIN) != 0 ? 0 : static_cast<int>(wait.count());
  ::poll(entries.data(), entries.size(), timeout);
  std::copy(entries.begin() + 1, entries.end(), others.begin());
}

bool Connection::Poll(short events, MonotonicTime deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Now()).count();
    pollfd entry{.fd = fd_, .events = events, .revents = 0};
    const int ready =
        ::poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

bool Connection::WaitReadable(std::chrono::milliseconds wait) const {
  return Poll(POLLIN, Now() + wait);
}

ssize_t Connection::TlsResult(int result) {
  const int error = SSL_get_error(ssl_.get(), result);
  ERR_clear_error();
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    wants_.now = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    return kWouldBlock;
  }
  return error == SSL_ERROR_ZERO_RETURN ? 0 : kBroken;
}

ssize_t Connection::TryRead(char* to, std::size_t size) {
  wants_.now = POLLIN;
  if (ssl_) {
    const int got = SSL_read(ssl_.get(), to, static_cast<int>(size));
    return got > 0 ? got : TlsResult(got);
  }
  for (;;) {
    const ssize_t got = ::recv(fd_, to, size, 0);
    if (got >= 0) return got;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK ? kWouldBlock : kBroken;
  }
}

ssize_t Connection::TryWrite(std::string_view bytes) {
  wants_.now = POLLOUT;
  if (ssl_) {
    const std::size_t size = std::min(bytes.size(), kWriteBytes);
    const int sent = SSL_write(ssl_.get(), bytes.data(), static_cast<int>(size));
    return sent > 0 ? sent : TlsResult(sent);
  }
  for (;;) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) return sent;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK ? kWouldBlock : kBroken;
  }
}

bool Connection::PeerHasGone() const {
  pollfd entry{.fd = fd_, .events = POLLRDHUP, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

void Connection::Cut() const { ::shutdown(fd_, SHUT_RDWR); }

}  // namespace tahoma::rest

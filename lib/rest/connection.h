// An accepted socket, plain or TLS, served in turns: handshake, request, answer, farewell.
//
// A turn does everything that needs no waiting. Between two turns a connection costs no thread: the
// lobby (lib/rest/lobby.h) holds the connection until its socket is ready or `deadline` has passed.
// Only streams wait for their reader, in the thread that feeds the stream.
//
// Scope: bytes and deadlines of a connection. lib/rest/http.cc makes the answers.
//
// Thread safety: a connection belongs to one thread at a time; only Cut may come from any thread.

#pragma once

#include <openssl/ssl.h>
#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/clock.h"
#include "lib/rest/budget.h"
#include "lib/rest/message.h"
#include "lib/rest/request_parser.h"
#include "lib/rest/upgrade.h"

namespace tahoma::rest {

// Sockets wait in real time.
inline MonotonicTime Now() { return SystemClock().MonotonicNow(); }

// A body up to this size is sent in one piece with its head; a larger body needs room
// (Budget::Share::HoldAnswer).
inline constexpr std::size_t kLargeAnswerBytes = 64 << 10;

class Connection final : public Upgraded {
 public:
  struct Limits {
    RequestParser::Limits request = {};
    std::chrono::milliseconds request_timeout{};  // for a handshake, a head, a body's beginning
    std::chrono::milliseconds write_timeout{};    // without any progress
    std::chrono::milliseconds keep_alive{};       // between two requests
    // Bytes per second: a long body or answer gets more time at this rate.
    std::size_t least_rate = 0;
  };
  enum class Phase { kGreeting, kReceiving, kAnswering, kLeaving };
  enum class Turn {
    kWait,   // nothing more can be done before the socket is ready for `wants`
    kReady,  // a head or a request has come whole, or cannot come any more (parser().state())
    kGone,   // to be destroyed
  };

  // Takes over the non-blocking socket. `tls` may be null.
  Connection(int fd, SSL_CTX* tls, std::string peer, std::unique_ptr<Budget::Share> share,
             Limits limits);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Does everything that needs no waiting, at most for a turn's time.
  Turn Proceed();
  // Answers the request and goes on with the next, or closes when `keep` is false.
  void Answer(std::string_view head, std::string body, bool keep);
  // As above, with a body of `length` bytes from `source`. Whenever the socket has taken the
  // earlier bytes, the thread that has the connection asks `source` for more. Calls `closed` when
  // the source is no longer needed.
  void Answer(std::string_view head, StreamSource source, std::function<void()> closed,
              std::size_t length, bool keep);
  // Sends "100 Continue" when there is room.
  void Continue();
  // Makes the connection useless, because an answer ended in its midst.
  void Break() { broken_ = true; }

  // For threads that may wait, as threads of streams.
  //
  // False when the peer has gone or is too slow.
  bool Send(std::string_view bytes);
  // Sends the rest of an answer. False when the peer has gone or is too slow.
  bool SendRest();
  // After an answer of 101; the first bytes are those that came behind the request.
  bool Read(std::string& out) override;
  std::optional<std::size_t> Write(std::string_view bytes) override;
  void Wait(short events, std::span<pollfd> others, std::chrono::milliseconds wait) const override;
  // Waits for the first byte of a request.
  bool WaitReadable(std::chrono::milliseconds wait) const;
  // The peer closed or reset the connection, as far as the kernel knows.
  bool PeerHasGone() const;
  // Ends every wait of the thread that owns the connection; any thread may call Cut.
  void Cut() const;

  int fd() const { return fd_; }
  Phase phase() const { return phase_; }
  short wants() const { return wants_.now; }  // POLLIN or POLLOUT
  // When the present phase has taken too long.
  MonotonicTime deadline() const;
  // The begin of the present phase, or of the request in the phase.
  MonotonicTime since() const { return since_; }
  // Whether the connection is between two requests; the client can then begin anew elsewhere.
  bool is_idle() const { return served_ && phase_ == Phase::kReceiving && !parser_.has_begun(); }
  // All bytes except large answers, which the share counts earlier.
  std::size_t held_bytes() const;
  RequestParser& parser() { return parser_; }
  const RequestParser& parser() const { return parser_; }
  Budget::Share& share() { return *share_; }
  const std::string& peer() const { return peer_; }
  bool is_tls() const { return ssl_ != nullptr; }
  const std::optional<ClientSubject>& client() const { return client_; }

 private:
  // A streamed body.
  struct Body {
    Body(StreamSource from, std::function<void()> then, std::size_t length)
        : source(std::move(from)), closed(std::move(then)), left(length) {}
    StreamSource source;
    std::function<void()> closed;
    std::size_t left;  // bytes that the source has yet to give
    ~Body();
  };

  void Enter(Phase phase);
  void Begin(std::string_view head, bool keep);
  bool Refill();
  Turn Greet();
  Turn Receive();
  Turn SendSome();
  Turn Leave();
  bool Poll(short events, MonotonicTime deadline) const;
  // Return the bytes moved now; 0: closed; kWouldBlock: wait for `wants_.now`; kBroken.
  ssize_t TryRead(char* to, std::size_t size);
  ssize_t TryWrite(std::string_view bytes);
  ssize_t TlsResult(int result);

  const int fd_;
  const std::string peer_;
  const std::unique_ptr<Budget::Share> share_;
  const Limits limits_;
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  std::unique_ptr<SSL, FreeSsl> ssl_;
  std::optional<ClientSubject> client_;

  Phase phase_ = Phase::kReceiving;
  struct Wants {
    short now = POLLIN;
    short read = POLLIN;  // after an upgrade: of the last Read, and of the last Write
    short write = POLLOUT;
  };
  Wants wants_;
  bool broken_ = false;
  bool served_ = false;
  bool keep_ = true;
  MonotonicTime since_;
  MonotonicTime progress_;  // when bytes of an answer went last

  RequestParser parser_;
  std::string in_;  // bytes after the request being served
  std::string out_;
  std::string out_body_;  // after out_
  std::size_t sent_ = 0;  // of both
  std::unique_ptr<Body> body_;
  std::size_t sent_before_ = 0;  // bytes of the answer that out_ held before
};

}  // namespace tahoma::rest

// The server's side of a WebSocket (RFC 6455): the handshake, and messages over an upgraded
// connection.
//
//   const auto protocol = WebSocketProtocol(request, {"v5.channel.k8s.io", "v4.channel.k8s.io"});
//   if (!protocol.ok()) return Response::FromStatus(protocol.status());
//   auto socket = std::make_shared<WebSocket>(Take);   // piece, begins
//   Response answer = AcceptWebSocket(request, *protocol);
//   answer.upgrade = [socket, &clock](Upgraded& peer, std::chrono::milliseconds wait) {
//     peer.Wait(socket->events(true), {}, wait);
//     return socket->Advance(peer, true, clock.MonotonicNow());
//   };
//
// Frames are wslay's (docs/design/0025-websocket.md): masks, lengths, fragments, pings and the
// closing handshake. A message is passed on in pieces as its bytes come, so no message is held and
// none is too long. A peer that breaks the protocol gets a close frame with the code for it.
//
// Scope: messages; their meaning belongs to the caller.
//
// Thread safety: one thread at a time.

#pragma once

#include <absl/status/statusor.h>
#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/rest/message.h"
#include "lib/rest/upgrade.h"

struct wslay_event_context;

namespace tahoma::rest {

// Whether the request asks for another protocol of that name, "websocket".
bool AsksUpgrade(const Request& request, std::string_view protocol);

// Returns the first of `known` that the request offers; empty when the request offers none.
// kInvalidArgument names the part of the handshake that is missing or wrong, or the protocols that
// are known.
absl::StatusOr<std::string> WebSocketProtocol(const Request& request,
                                              const std::vector<std::string>& known);
// Returns the 101 for a request that WebSocketProtocol has taken. The caller sets `upgrade`.
Response AcceptWebSocket(const Request& request, const std::string& protocol);

class WebSocket {
 public:
  // Gets the pieces of messages; `begins` with the first piece of each.
  using Sink = std::function<void(std::string_view piece, bool begins)>;

  explicit WebSocket(Sink sink);
  ~WebSocket();
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  // Moves what can be moved without waiting; takes nothing from the peer unless `read`. False when
  // the connection is over: closed by both sides, gone, or silent for ten minutes in spite of
  // pings.
  bool Advance(Upgraded& peer, bool read, MonotonicTime now);
  // The events that Upgraded::Wait waits for before the next Advance.
  short events(bool read) const;

  // Queues a binary message of the two parts; nothing after Close.
  void Send(std::string_view head, std::string_view rest);
  // Ends the conversation after the queued messages: the peer has two seconds to answer.
  void Close(std::uint16_t code = 1000, std::string_view reason = {});

  bool closing() const { return closing_; }
  // The bytes of messages that the peer has not taken.
  std::size_t queued() const;

 private:
  struct Callbacks;
  struct Free {
    void operator()(wslay_event_context* context) const;
  };

  bool Keep(MonotonicTime now);
  bool MayRead() const;
  bool Transmit();

  const Sink sink_;
  std::unique_ptr<wslay_event_context, Free> context_;
  Upgraded* peer_ = nullptr;  // during Advance
  bool gone_ = false;
  bool closing_ = false;
  std::uint16_t close_code_ = 0;  // of our close frame, which waits for the messages before
  std::string close_reason_;
  bool begins_ = false;
  bool is_data_ = false;  // the frame that is being received
  std::string incoming_;
  MonotonicTime heard_{};  // the peer, last
  MonotonicTime pinged_{};
  MonotonicTime closed_{};
};

}  // namespace tahoma::rest

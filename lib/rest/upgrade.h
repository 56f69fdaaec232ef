// A connection that has left HTTP: after an answer of 101 both sides send bytes as they like.
//
//   rest::Response answer;
//   answer.status = 101;
//   answer.headers = {{"Connection", "Upgrade"}, {"Upgrade", "echo"}};
//   answer.upgrade = [kept = std::string()](rest::Upgraded& peer, auto wait) mutable {
//     peer.Wait(kept.empty() ? POLLIN : POLLOUT, {}, wait);
//     if (kept.empty() && !peer.Read(kept)) return false;
//     const std::optional<std::size_t> sent = peer.Write(kept);
//     if (sent) kept.erase(0, *sent);
//     return sent.has_value();
//   };
//
// The thread that calls Response::upgrade is the connection's own, like a stream's, and counts as
// such (lib/rest/server.h). At a stop of the server the connection is cut between two calls.
//
// Scope: bytes. lib/rest/websocket.h makes messages of them.
//
// Thread safety: only from within Response::upgrade.

#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/rest/message.h"

namespace tahoma::rest {

class Upgraded {
 public:
  virtual ~Upgraded() = default;

  // Appends at most 32 KiB, or nothing when nothing has come. False when the peer has gone.
  virtual bool Read(std::string& out) = 0;
  // Returns how many bytes the socket took, perhaps none; nothing when the peer has gone.
  virtual std::optional<std::size_t> Write(std::string_view bytes) = 0;
  // Waits at most `wait` until Read (POLLIN in `events`) or Write (POLLOUT) can do something, or
  // one of `others` is ready, whose `revents` are then set.
  virtual void Wait(short events, std::span<pollfd> others,
                    std::chrono::milliseconds wait) const = 0;
};

}  // namespace tahoma::rest

#include "sim-node/podrunner/port_forward.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "sim-node/podrunner/listening.h"

namespace tahoma::sim {
namespace {

constexpr std::size_t kJoinedMost = 128;
constexpr std::size_t kHeldForPodMost = std::size_t{1} << 20U;
constexpr std::size_t kQueuedMost = std::size_t{256} << 10U;
constexpr std::size_t kPieceOfPort = std::size_t{16} << 10U;
constexpr std::uint32_t kProtocolError = 1;
constexpr std::uint32_t kRefusedStream = 3;
constexpr std::uint16_t kCloseProtocolError = 1002;

std::string ValueOf(const std::map<std::string, std::string>& headers, const std::string& name) {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

std::uint16_t PortOf(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? port : std::uint16_t{0};
}

}  // namespace

PortForward::PortForward(Options options)
    : options_(std::move(options)),
      frames_({.opened = [this](auto stream, const auto& headers) { OnStream(stream, headers); },
               .data = [this](auto stream, auto bytes, bool end) { OnData(stream, bytes, end); },
               .reset = [this](auto stream) { OnReset(stream); }}),
      socket_([this](std::string_view piece, bool begins) { Receive(piece, begins); }) {}

std::size_t PortForward::held() const {
  std::size_t held = 0;
  for (const auto& [id, joined] : joined_) held += joined.to_pod.size();
  return held;
}

bool PortForward::Step(rest::Upgraded& peer, std::chrono::milliseconds wait) {
  if (!std::exchange(begun_, true) && !options_.spdy) OpenChannels();
  const bool read_peer = held() < kHeldForPodMost;
  const bool takes_out = socket_.queued() < kQueuedMost;
  std::vector<pollfd> polled;
  for (const auto& [id, joined] : joined_) {
    pollfd entry{.fd = joined.socket.get(), .events = 0, .revents = 0};
    if (takes_out) entry.events |= POLLIN;
    if (!joined.to_pod.empty()) entry.events |= POLLOUT;
    if (entry.events != 0) polled.push_back(entry);
  }
  peer.Wait(socket_.events(read_peer), polled, wait);
  for (auto& [id, joined] : joined_) Move(joined, takes_out);
  std::erase_if(joined_, [](const auto& one) { return one.second.over; });
  if (begun_ && !options_.spdy && joined_.empty() && !socket_.closing()) socket_.Close();
  const bool goes_on = socket_.Advance(peer, read_peer, SystemClock().MonotonicNow());
  if (const std::string out = frames_.TakeOut(); !out.empty()) socket_.Send("", out);
  return goes_on;
}

void PortForward::Receive(std::string_view piece, bool begins) {
  if (options_.spdy) {
    const absl::Status read = frames_.Receive(piece);
    if (!read.ok()) socket_.Close(kCloseProtocolError, Message(read).substr(0, 100));
    return;
  }
  if (begins) {
    channel_ = static_cast<std::uint8_t>(piece.front());
    piece.remove_prefix(1);
  }
  if (!piece.empty()) OnData(channel_, piece, false);
}

void PortForward::OpenChannels() {
  for (std::size_t i = 0; i < options_.ports.size(); ++i) {
    Joined joined{.data = static_cast<std::uint32_t>(2 * i),
                  .error = static_cast<std::uint32_t>(2 * i + 1),
                  .port = options_.ports[i]};
    const std::array<char, 2> port = {static_cast<char>(joined.port & 0xffU),
                                      static_cast<char>(joined.port >> 8U)};
    Emit(*joined.data, {port.data(), port.size()}, false);
    Emit(*joined.error, {port.data(), port.size()}, false);
    Open(joined);
    if (!joined.over) joined_.emplace(std::to_string(i), std::move(joined));
  }
}

void PortForward::OnStream(std::uint32_t stream,
                           const std::map<std::string, std::string>& headers) {
  const std::string type = ValueOf(headers, "streamtype");
  std::string request = ValueOf(headers, "requestid");
  // An old client numbers no requests, and opens the stream of errors before that of data.
  if (request.empty()) request = std::to_string(type == "data" ? stream - 2 : stream);
  if (joined_.size() >= kJoinedMost && !joined_.contains(request)) {
    return frames_.Reset(stream, kRefusedStream);
  }
  Joined& joined = joined_[request];
  std::optional<std::uint32_t>& place = type == "data" ? joined.data : joined.error;
  if ((type != "data" && type != "error") || place) return frames_.Reset(stream, kProtocolError);
  frames_.Reply(stream);
  place = stream;
  if (type == "data") joined.port = PortOf(ValueOf(headers, "port"));
  if (joined.data && joined.error) Open(joined);
}

void PortForward::OnData(std::uint32_t stream, std::string_view bytes, bool end) {
  for (auto& [id, joined] : joined_) {
    if (joined.data != stream || joined.client_ended) continue;
    joined.to_pod += bytes;
    joined.client_ended = end;
    return;
  }
}

void PortForward::OnReset(std::uint32_t stream) {
  for (auto& [id, joined] : joined_) {
    if (joined.data == stream || joined.error == stream) joined.over = true;
  }
}

void PortForward::Open(Joined& joined) {
  const std::optional<Listener> listener = ListenerOf(options_.user, joined.port);
  if (!listener) {
    return Fail(joined, fmt::format("no process of the pod listens on port {}", joined.port));
  }
  joined.socket = FileDescriptor(
      ::socket(listener->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const socklen_t size =
      listener->address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (joined.socket.get() < 0 ||
      (::connect(joined.socket.get(), reinterpret_cast<const sockaddr*>(&listener->address),
                 size) != 0 &&
       errno != EINPROGRESS)) {
    Fail(joined, std::strerror(errno));
  }
}

void PortForward::Fail(Joined& joined, std::string_view why) {
  joined.over = true;
  if (joined.error) {
    Emit(*joined.error,
         fmt::format("error forwarding port {} to pod {}: {}", joined.port, options_.pod, why),
         true);
  }
  if (joined.data) Emit(*joined.data, "", true);
}

void PortForward::Write(Joined& joined) {
  while (!joined.to_pod.empty()) {
    const ssize_t sent =
        ::send(joined.socket.get(), joined.to_pod.data(), joined.to_pod.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      // A connection that is still being made takes nothing yet.
      if (errno != EAGAIN && errno != EINTR && errno != ENOTCONN)
        Fail(joined, std::strerror(errno));
      return;
    }
    joined.to_pod.erase(0, static_cast<std::size_t>(sent));
  }
  if (joined.client_ended && !std::exchange(joined.told_end, true)) {
    ::shutdown(joined.socket.get(), SHUT_WR);
  }
}

void PortForward::Move(Joined& joined, bool takes_out) {
  if (joined.over || joined.socket.get() < 0) return;
  Write(joined);
  if (joined.over || !takes_out) return;
  std::array<char, kPieceOfPort> bytes;
  const ssize_t got = ::recv(joined.socket.get(), bytes.data(), bytes.size(), 0);
  if (got > 0) {
    Emit(*joined.data, {bytes.data(), static_cast<std::size_t>(got)}, false);
  } else if (got == 0) {
    joined.over = true;
    Emit(*joined.data, "", true);
    Emit(*joined.error, "", true);
  } else if (errno != EAGAIN && errno != EINTR && errno != ENOTCONN) {
    Fail(joined, std::strerror(errno));
  }
}

void PortForward::Emit(std::uint32_t stream, std::string_view bytes, bool end) {
  if (options_.spdy) {
    frames_.Data(stream, bytes, end);
    return;
  }
  const char channel = static_cast<char>(stream);
  if (!bytes.empty()) socket_.Send({&channel, 1}, bytes);
}

}  // namespace tahoma::sim

#include "controller/apiserver/verbs/node_tunnel.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/verbs/node_fetch.h"
#include "lib/base/ascii.h"
#include "lib/base/clock.h"
#include "lib/base/file_descriptor.h"
#include "lib/base/host_port.h"
#include "lib/base/status.h"
#include "lib/rest/upgrade.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr std::chrono::seconds kConnectWait{10};
// The time for a node's head, and for the text of its refusal.
constexpr std::chrono::seconds kHeadWait{30};
// The head of an answer, with the text of a refusal.
constexpr std::size_t kAnswerBytesMost = std::size_t{32} << 10U;
constexpr std::size_t kUnderWayMost = std::size_t{64} << 10U;
constexpr std::size_t kPieceBytes = std::size_t{16} << 10U;
// The headers of a handshake that are the client's to choose.
constexpr std::array<std::string_view, 3> kClientHeaders = {
    "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Protocol"};
constexpr std::array<std::string_view, 2> kNodeHeaders = {"Sec-WebSocket-Accept",
                                                          "Sec-WebSocket-Protocol"};
constexpr int kUpgradeRequired = 426;

bool PollOne(int fd, short events, std::chrono::nanoseconds wait) {
  pollfd entry{.fd = fd, .events = events, .revents = 0};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(wait).count();
  return ::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) > 0;
}

absl::StatusOr<std::unique_ptr<FileDescriptor>> ConnectTo(const NodeEndpoint& node) {
  const addrinfo hints{.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                       .ai_family = AF_UNSPEC,
                       .ai_socktype = SOCK_STREAM,
                       .ai_protocol = 0,
                       .ai_addrlen = 0,
                       .ai_addr = nullptr,
                       .ai_canonname = nullptr,
                       .ai_next = nullptr};
  addrinfo* found = nullptr;
  if (getaddrinfo(node.host.c_str(), std::to_string(node.port).c_str(), &hints, &found) != 0) {
    return Unavailable("{} is no address", node.host);
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  auto socket = std::make_unique<FileDescriptor>(
      ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  int error = 0;
  if (socket->get() < 0 ||
      (::connect(socket->get(), found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS)) {
    error = errno;
  } else {
    socklen_t size = sizeof error;
    if (!PollOne(socket->get(), POLLOUT, kConnectWait)) {
      error = ETIMEDOUT;
    } else if (getsockopt(socket->get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
      error = errno;
    }
  }
  if (error != 0) return Unavailable("{}", std::strerror(error));
  const int yes = 1;
  setsockopt(socket->get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return socket;
}

std::string RequestTo(const NodeEndpoint& node, const std::string& target, const std::string& token,
                      const rest::Request& client) {
  std::string head =
      fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\n", target, JoinHostPort(node.host, node.port));
  if (!token.empty()) head += fmt::format("Authorization: Bearer {}\r\n", token);
  head += "Connection: Upgrade\r\n";
  for (const auto& [name, value] : client.headers) {
    const bool is_upgrade = EqualsIgnoringCase(name, "Upgrade");
    const bool passed = std::ranges::any_of(
        kClientHeaders, [&](std::string_view known) { return EqualsIgnoringCase(name, known); });
    if (is_upgrade || passed) head += fmt::format("{}: {}\r\n", name, value);
  }
  return head + "\r\n";
}

// A node's answer to a handshake. Bytes after the head, and after the body of a refusal, are
// `rest`.
struct NodeAnswer {
  int status = 0;
  rest::Headers headers;
  std::string body;
  std::string rest;
};

std::optional<NodeAnswer> ParseHead(std::string_view head) {
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  NodeAnswer answer;
  const std::string_view line = head.substr(0, head.find("\r\n"));
  if (!line.starts_with(kVersion)) return std::nullopt;
  const char* code = line.data() + kVersion.size();
  if (std::from_chars(code, line.data() + line.size(), answer.status).ec != std::errc()) {
    return std::nullopt;
  }
  head.remove_prefix(std::min(line.size() + 2, head.size()));
  while (!head.empty()) {
    const std::string_view field = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(field.size() + 2, head.size()));
    const std::size_t colon = std::min(field.find(':'), field.size());
    answer.headers.emplace_back(field.substr(0, colon),
                                Trimmed(field.substr(std::min(colon + 1, field.size()))));
  }
  return answer;
}

std::size_t LengthOf(const NodeAnswer& answer) {
  std::size_t length = 0;
  for (const auto& [name, value] : answer.headers) {
    if (!EqualsIgnoringCase(name, "Content-Length")) continue;
    std::from_chars(value.data(), value.data() + value.size(), length);
  }
  return std::min(length, kAnswerBytesMost);
}

bool SendAll(int fd, std::string_view bytes, MonotonicTime until) {
  const SystemClock clock;
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN || !PollOne(fd, POLLOUT, until - clock.MonotonicNow())) {
      return false;
    }
  }
  return true;
}

// Reads the head of the answer and, unless the answer is 101, its body.
absl::StatusOr<NodeAnswer> ReadAnswer(int fd, MonotonicTime until) {
  constexpr std::string_view kHeadEnd = "\r\n\r\n";
  const SystemClock clock;
  std::string bytes;
  std::optional<NodeAnswer> answer;
  std::array<char, kPieceBytes> piece;
  while (bytes.size() < kAnswerBytesMost) {
    const std::size_t end = bytes.find(kHeadEnd);
    if (!answer && end != std::string::npos) {
      answer = ParseHead(std::string_view(bytes).substr(0, end));
      if (!answer) return Unavailable("the node does not answer in HTTP/1.1");
      bytes.erase(0, end + kHeadEnd.size());
    }
    const std::size_t length = !answer || answer->status == 101 ? 0 : LengthOf(*answer);
    if (answer && bytes.size() >= length) {
      answer->body = bytes.substr(0, length);
      answer->rest = bytes.substr(length);
      return *std::move(answer);
    }
    if (!PollOne(fd, POLLIN, until - clock.MonotonicNow())) {
      return Unavailable("the node did not answer in time");
    }
    const ssize_t got = ::recv(fd, piece.data(), piece.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
      return Unavailable("the node ended the connection");
    }
    if (got > 0) bytes.append(piece.data(), static_cast<std::size_t>(got));
  }
  return Unavailable("the node's answer is too long");
}

class Tunnel {
 public:
  Tunnel(std::unique_ptr<FileDescriptor> node, std::string to_client)
      : node_(std::move(node)), to_client_(std::move(to_client)) {}

  // As rest::UpgradeStep.
  bool Step(rest::Upgraded& client, std::chrono::milliseconds wait) {
    const bool read_client = !node_ended_ && to_node_.size() < kUnderWayMost;
    pollfd node{.fd = node_ended_ ? -1 : node_->get(), .events = 0, .revents = 0};
    if (to_client_.size() < kUnderWayMost) node.events |= POLLIN;
    if (!to_node_.empty()) node.events |= POLLOUT;
    const int client_events = (read_client ? POLLIN : 0) | (to_client_.empty() ? 0 : POLLOUT);
    client.Wait(static_cast<short>(client_events), {&node, 1}, wait);
    if (read_client && !client.Read(to_node_)) return false;
    if (!node_ended_) node_ended_ = !MoveNode();
    const auto sent = client.Write(to_client_);
    if (!sent) return false;
    to_client_.erase(0, *sent);
    return !node_ended_ || !to_client_.empty();
  }

 private:
  // False when the node has gone.
  bool MoveNode() {
    if (!to_node_.empty()) {
      const ssize_t sent = ::send(node_->get(), to_node_.data(), to_node_.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (sent > 0) to_node_.erase(0, static_cast<std::size_t>(sent));
    }
    if (to_client_.size() >= kUnderWayMost) return true;
    std::array<char, kPieceBytes> piece;
    const ssize_t got = ::recv(node_->get(), piece.data(), piece.size(), 0);
    if (got > 0) to_client_.append(piece.data(), static_cast<std::size_t>(got));
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
  }

  const std::unique_ptr<FileDescriptor> node_;
  std::string to_node_;
  std::string to_client_;
  bool node_ended_ = false;
};

rest::Response RefusedHandshake(std::string_view url, const NodeAnswer& answer,
                                const rest::Request& client) {
  if (answer.status != kUpgradeRequired) return RefusalOfNode(url, answer.status, answer.body);
  const bool spdy = client.header("Upgrade").starts_with("SPDY");
  return ResponseOf(BadRequestError(
      spdy ? "SPDY is not served; use WebSocket, as kubectl 1.31 and later do by themselves"
           : std::string(Trimmed(answer.body, "\r\n"))));
}

rest::Response Join(const NodeEndpoint& node, const std::string& target, const std::string& token,
                    const rest::Request& client) {
  const std::string url = "http://" + JoinHostPort(node.host, node.port) + target;
  auto socket = ConnectTo(node);
  if (!socket.ok()) return UnreachableNode(url, Message(socket.status()));
  const MonotonicTime until = SystemClock().MonotonicNow() + kHeadWait;
  if (!SendAll((*socket)->get(), RequestTo(node, target, token, client), until)) {
    return UnreachableNode(url, "the node does not take the request");
  }
  absl::StatusOr<NodeAnswer> answer = ReadAnswer((*socket)->get(), until);
  if (!answer.ok()) return UnreachableNode(url, Message(answer.status()));
  if (answer->status != 101) return RefusedHandshake(url, *answer, client);
  rest::Response joined;
  joined.status = 101;
  joined.headers = {{"Connection", "Upgrade"}, {"Upgrade", "websocket"}};
  for (const auto& [name, value] : answer->headers) {
    for (const std::string_view known : kNodeHeaders) {
      if (EqualsIgnoringCase(name, known)) joined.headers.emplace_back(known, value);
    }
  }
  auto tunnel = std::make_shared<Tunnel>(*std::move(socket), std::move(answer->rest));
  joined.upgrade = [tunnel](rest::Upgraded& peer, std::chrono::milliseconds wait) {
    return tunnel->Step(peer, wait);
  };
  return joined;
}

}  // namespace

NodeTunnel HttpNodeTunnel(std::string secret_file) {
  return [secret_file = std::move(secret_file)](const NodeEndpoint& node, const std::string& target,
                                                const rest::Request& client) {
    const auto token = TokenToShow(secret_file, node);
    if (!token.ok()) {
      return UnreachableNode("http://" + JoinHostPort(node.host, node.port) + target,
                             Message(token.status()));
    }
    return Join(node, target, *token, client);
  };
}

}  // namespace tahoma::controller::apiserver

#include "lib/rest/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "lib/base/host_port.h"
#include "lib/base/status.h"

namespace tahoma::rest {
namespace {

// A short one would make a crowd of clients wait for the kernel's retries.
constexpr int kBacklog = 4096;

template <typename Address>
Address As(const sockaddr_storage& storage) {
  Address address{};
  std::memcpy(&address, &storage, sizeof address);
  return address;
}

// -1 with errno set.
int Open(const addrinfo& at) {
  const int fd = ::socket(at.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, at.ai_protocol);
  if (fd < 0) return -1;
  const int yes = 1, no = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (at.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (::bind(fd, at.ai_addr, at.ai_addrlen) == 0 && ::listen(fd, kBacklog) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

}  // namespace

absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text) {
  const auto split = SplitHostPort(text);
  if (!split.ok() || !split->port) {
    return InvalidArgument(
        "\"{}\" is not an address; expected host:port, for example 127.0.0.1:8001{}", text,
        split.ok() ? "" : fmt::format(" ({})", Message(split.status())));
  }
  return ListenAddress{.host = split->host.empty() ? "0.0.0.0" : split->host, .port = *split->port};
}

absl::StatusOr<int> Listen(ListenAddress& at) {
  const std::string named = JoinHostPort(at.host, at.port);
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &found) != 0) {
    return InvalidArgument("cannot listen on {}: the host is not known", named);
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  int fd = -1;
  for (const addrinfo* one = found; one != nullptr && fd < 0; one = one->ai_next) fd = Open(*one);
  if (fd < 0 && errno == EADDRINUSE) return Unavailable("{} is in use by another program", named);
  if (fd < 0) return InvalidArgument("cannot listen on {}: {}", named, std::strerror(errno));
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  at.port = ntohs(bound.ss_family == AF_INET6 ? As<sockaddr_in6>(bound).sin6_port
                                              : As<sockaddr_in>(bound).sin_port);
  return fd;
}

std::string PeerName(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET6) {
    const auto v6 = As<sockaddr_in6>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    return JoinHostPort(text.data(), ntohs(v6.sin6_port));
  }
  const auto v4 = As<sockaddr_in>(address);
  inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  return JoinHostPort(text.data(), ntohs(v4.sin_port));
}

std::string ClientName(const sockaddr_storage& address) {
  if (address.ss_family != AF_INET6) {
    const in_addr v4 = As<sockaddr_in>(address).sin_addr;
    return {reinterpret_cast<const char*>(&v4), sizeof v4};
  }
  const in6_addr v6 = As<sockaddr_in6>(address).sin6_addr;
  const auto* bytes = reinterpret_cast<const char*>(&v6);
  // ::ffff:a.b.c.d is an IPv4 client of a socket for both.
  return IN6_IS_ADDR_V4MAPPED(&v6) ? std::string(bytes + 12, 4) : std::string(bytes, 8);
}

std::string ClientOfPeer(const std::string& peer) {
  const auto split = SplitHostPort(peer);
  if (!split.ok()) return peer;
  sockaddr_storage address{};
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
  if (inet_pton(AF_INET, split->host.c_str(), &v4->sin_addr) == 1) {
    address.ss_family = AF_INET;
  } else if (inet_pton(AF_INET6, split->host.c_str(), &v6->sin6_addr) == 1) {
    address.ss_family = AF_INET6;
  } else {
    return peer;
  }
  return ClientName(address);
}

}  // namespace tahoma::rest

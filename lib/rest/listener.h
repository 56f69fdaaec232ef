// The listening socket of a server.
//
//   TAHOMA_ASSIGN_OR_RETURN(ListenAddress at, ParseListenAddress("127.0.0.1:0"));
//   TAHOMA_ASSIGN_OR_RETURN(const int socket, Listen(at));    // at.port is the bound one now
//
// Scope: addresses and a listening socket; IPv4 and IPv6.
//
// Thread safety: pure functions over the system.

#pragma once

#include <absl/status/statusor.h>
#include <sys/socket.h>

#include <string>

namespace tahoma::rest {

struct ListenAddress {
  std::string host;
  int port = 0;  // 0: any
};

// "host:port", "[v6]:port", ":port" for all interfaces; kInvalidArgument for anything else.
absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text);

// Returns a non-blocking listening socket, and its port in `at`. kInvalidArgument for an unknown
// host, kUnavailable when another program has the address.
absl::StatusOr<int> Listen(ListenAddress& at);

// "127.0.0.1:4711", "[::1]:4711".
std::string PeerName(const sockaddr_storage& address);
// Returns the client of an address: an IPv4 address, or the 64 bits of an IPv6 address that a
// network hands to a customer.
std::string ClientName(const sockaddr_storage& address);
// Returns the client of a PeerName, as in Request::peer; any other text unchanged.
std::string ClientOfPeer(const std::string& peer);

}  // namespace tahoma::rest

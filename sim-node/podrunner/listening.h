// The sockets that listen on this machine, from the kernel's tables.
//
// Scope: the text of /proc/net/tcp and tcp6 (proc_net(5)).
//
// Thread safety: pure functions; ListenerOf reads the tables.

#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tahoma::sim {

struct Listener {
  sockaddr_storage address{};  // as it can be called: loopback for a socket of all addresses
  std::uint16_t port = 0;
  uid_t user = 0;
};

std::vector<Listener> Listeners(std::string_view table, bool v6);

// Returns where a program of the user listens on the port; nothing when none does.
std::optional<Listener> ListenerOf(uid_t user, std::uint16_t port);

}  // namespace tahoma::sim

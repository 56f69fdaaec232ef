// Network addresses as text: a host, and a port or none.
//
//   SplitHostPort("[::1]:8001");        // {"::1", 8001}
//   SplitHostPort("node-a");            // {"node-a", nullopt}
//   JoinHostPort("::1", 8001);          // "[::1]:8001"
//
// An IPv6 address stands in brackets, as in URLs (RFC 3986, 3.2.2): where its last group ends and
// a port begins could not be told otherwise.
//
// Scope: text. Nothing is resolved, and a host may be any characters; whether a host or a port must
// be given, and which, is the caller's question.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tahoma {

struct HostPort {
  std::string host;  // without brackets; may be empty
  std::optional<std::uint16_t> port;
};

// "host", "host:port", "[v6]", "[v6]:port", ":port". kInvalidArgument says what is wrong, without
// the text: `port "x" is not a number from 0 to 65535`.
absl::StatusOr<HostPort> SplitHostPort(std::string_view text);

// "host:port", with brackets around a host that has a colon.
std::string JoinHostPort(std::string_view host, std::string_view port);
std::string JoinHostPort(std::string_view host, int port);

}  // namespace tahoma

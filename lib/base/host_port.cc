#include "lib/base/host_port.h"

#include <fmt/format.h>

#include <charconv>

#include "lib/base/status.h"

namespace tahoma {
namespace {

absl::StatusOr<std::uint16_t> ParsePort(std::string_view digits) {
  std::uint16_t port = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, port);
  if (error == std::errc() && rest == end) return port;
  return InvalidArgument("port \"{}\" is not a number from 0 to 65535", digits.substr(0, 64));
}

}  // namespace

absl::StatusOr<HostPort> SplitHostPort(std::string_view text) {
  HostPort split;
  std::string_view rest = text;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return InvalidArgument("\"[\" has no \"]\"");
    split.host = text.substr(1, end - 1);
    if (split.host.find(':') == std::string::npos) {
      return InvalidArgument("brackets are for IPv6 addresses");
    }
    rest = text.substr(end + 1);
    if (!rest.empty() && !rest.starts_with(':')) {
      return InvalidArgument("after \"]\" only a port may follow");
    }
  } else {
    const std::size_t colon = text.find(':');
    split.host = text.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon);
    if (rest.find(':', 1) != std::string_view::npos) {
      return InvalidArgument("an IPv6 address needs brackets, as in [::1]:8001");
    }
  }
  if (rest.empty()) return split;
  TAHOMA_ASSIGN_OR_RETURN(split.port, ParsePort(rest.substr(1)));
  return split;
}

std::string JoinHostPort(std::string_view host, std::string_view port) {
  const bool v6 = host.find(':') != std::string_view::npos;
  return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string JoinHostPort(std::string_view host, int port) {
  return JoinHostPort(host, std::to_string(port));
}

}  // namespace tahoma

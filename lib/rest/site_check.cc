#include "lib/rest/site_check.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/ascii.h"
#include "lib/base/host_port.h"
#include "lib/base/loopback.h"
#include "lib/base/status.h"

namespace tahoma::rest {
namespace {

constexpr std::size_t kAllowedHostsMost = 100;  // a request's Host is compared with each

// Returns a host in its canonical form: small letters, and an IPv6 address in its short form (RFC
// 5952).
std::string Canonical(std::string_view host) {
  std::string text(host);
  std::ranges::transform(text, text.begin(), AsciiLower);
  in6_addr address{};
  std::array<char, INET6_ADDRSTRLEN> short_form{};
  if (inet_pton(AF_INET6, text.c_str(), &address) == 1 &&
      inet_ntop(AF_INET6, &address, short_form.data(), short_form.size()) != nullptr) {
    text = short_form.data();
  }
  return text;
}

struct Authority {
  std::string host;  // Canonical, without brackets
  int port = 0;      // 0: the scheme's
};

// Nothing when the text is no host with or without a port.
std::optional<Authority> ParseAuthority(std::string_view text) {
  const auto split = SplitHostPort(text);
  if (!split.ok() || split->port == 0) return std::nullopt;
  std::string_view host = split->host;
  // A name with its root's dot is the same name.
  if (host.ends_with('.')) host.remove_suffix(1);
  if (host.empty()) return std::nullopt;
  return Authority{.host = Canonical(host), .port = split->port.value_or(0)};
}

bool IsAddress(const std::string& host) {
  in6_addr ignored{};
  return inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

// Labels as RFC 1123 has them, and with "_", which container tools put into names. Browsers take a
// name whose last label is a number for an address (URL Standard, "ends in a number").
bool IsHostName(std::string_view host) {
  constexpr std::size_t kNameMost = 253;
  constexpr std::size_t kLabelMost = 63;
  if (host.size() > kNameMost) return false;
  for (;;) {
    const std::size_t dot = std::min(host.find('.'), host.size());
    const std::string_view label = host.substr(0, dot);
    if (label.empty() || label.size() > kLabelMost) return false;
    if (label.front() == '-' || label.back() == '-') return false;
    if (!std::ranges::all_of(label, [](char c) {
          return IsDigit(c) || (AsciiLower(c) >= 'a' && AsciiLower(c) <= 'z') || c == '-' ||
                 c == '_';
        })) {
      return false;
    }
    if (dot == host.size()) return !std::ranges::all_of(label, IsDigit);
    host.remove_prefix(dot + 1);
  }
}

int PortOr(const Authority& authority, bool tls) {
  return authority.port != 0 ? authority.port : tls ? 443 : 80;
}

// Browsers name themselves and the page that sends. A page cannot prevent either header, and cannot
// make a browser send Authorization without a preflight.
bool IsFromBrowser(const Request& head) {
  if (!head.header("Authorization").empty()) return false;
  return !head.header("Origin").empty() || !head.header("Referer").empty() ||
         !head.header("Sec-Fetch-Site").empty() ||
         head.header("User-Agent").starts_with("Mozilla/");
}

bool HasBody(const Request& head) {
  return !head.header("Transfer-Encoding").empty() ||
         head.header("Content-Length").find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

absl::Status CheckAllowedHosts(const std::vector<std::string>& hosts) {
  if (hosts.size() > kAllowedHostsMost) {
    return InvalidArgument("{} hosts; at most {} can be allowed", hosts.size(), kAllowedHostsMost);
  }
  for (const std::string& host : hosts) {
    if (IsAddress(host) || IsHostName(host)) continue;
    return InvalidArgument(
        "\"{}\" is not a host; expected a name or an address without port, for example "
        "tahoma.example.com, 10.0.0.5 or fd00::1",
        host);
  }
  return absl::OkStatus();
}

SiteCheck::SiteCheck(Options options) : options_(std::move(options)) {
  options_.address_host = Canonical(options_.address_host);
  for (std::string& host : options_.allowed_hosts) host = Canonical(host);
}

bool SiteCheck::IsAllowed(const std::string& host) const {
  return std::ranges::find(options_.allowed_hosts, host) != options_.allowed_hosts.end();
}

bool SiteCheck::IsOwnHost(const std::string& host) const {
  if (IsLoopbackHost(host) || IsAllowed(host) || host == options_.address_host) return true;
  if (!options_.loopback && IsAddress(host)) return true;
  return options_.certificate_names && options_.certificate_names(host);
}

bool SiteCheck::IsOwnOrigin(std::string_view origin, const Request& head) const {
  const std::size_t colon = std::min(origin.find("://"), origin.size());
  const std::string_view scheme = origin.substr(0, colon);
  const auto page = ParseAuthority(origin.substr(std::min(colon + 3, origin.size())));
  if (!page || (scheme != "http" && scheme != "https")) return false;
  if (IsAllowed(page->host)) return true;
  const auto own = ParseAuthority(head.header("Host"));
  return own && page->host == own->host && (scheme == "https") == head.tls &&
         PortOr(*page, head.tls) == PortOr(*own, head.tls);
}

std::optional<SiteCheck::Refusal> SiteCheck::Refuse(const Request& head) const {
  if (const std::string_view host = head.header("Host"); !host.empty()) {
    const auto asked = ParseAuthority(host);
    if (!asked)
      return Refusal{400, fmt::format("Host must be a name and a port, not \"{}\"", host)};
    if (!IsOwnHost(asked->host)) {
      return Refusal{.detail =
                         fmt::format("the host \"{}\" is not one of this server's; call it by "
                                     "its address, or list the name in allowedHosts",
                                     asked->host)};
    }
  }
  if (const std::string_view origin = head.header("Origin"); !origin.empty()) {
    if (!IsOwnOrigin(origin, head)) {
      return Refusal{.detail = fmt::format("a page of \"{}\" may not call this server, unless "
                                           "allowedHosts lists its host",
                                           origin)};
    }
  } else if (EqualsIgnoringCase(head.header("Sec-Fetch-Site"), "cross-site")) {
    return Refusal{.detail = "a page of another site may not call this server"};
  }
  if (HasBody(head) && head.header("Content-Type").empty() && IsFromBrowser(head)) {
    return Refusal{415, "a body from a browser must have a Content-Type"};
  }
  return std::nullopt;
}

}  // namespace tahoma::rest

// Decides whether a request may come from its origin: a browser gives any page access to servers on
// its own machine, and brings the page's requests.
//
//   SiteCheck check({.address_host = "127.0.0.1", .loopback = true});
//   if (auto refusal = check.Refuse(head)) …      // {403, "the host \"evil.example\" is not …"}
//
// - Host must be a name of this server. A page whose own name was made to lead here (DNS rebinding)
//   has the same origin for its browser; only the name in Host shows the page. No browser leaves
//   Host out. An address is no name: an address cannot be made to lead here.
// - Origin must be this server, or a page of an allowed host. Browsers send Origin with every
//   request but plain reads, and with reads whose answer a page wants.
// - Sec-Fetch-Site must not be cross-site: this covers requests without Origin, such as links and
//   images.
// - A body from a browser must have a Content-Type. A page elsewhere may send bytes without a
//   Content-Type, as kubectl create --raw and kubectl scale do; but the page's browser names
//   itself, and would first ask for Authorization (and is always refused).
//
// Scope: text; no sockets. Authentication is elsewhere.
//
// Thread safety: const.

#pragma once

#include <absl/status/status.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/rest/message.h"

namespace tahoma::rest {

// Checks that each entry of the option allowedHosts is a host's name, or an address without
// brackets, without a port: kInvalidArgument quotes the first bad entry.
absl::Status CheckAllowedHosts(const std::vector<std::string>& hosts);

class SiteCheck {
 public:
  struct Options {
    std::string address_host;  // where the server listens; every interface: 0.0.0.0 or ::
    bool loopback = true;      // only this machine reaches the server
    std::vector<std::string> allowed_hosts = {};  // as CheckAllowedHosts accepts
    std::function<bool(const std::string& host)> certificate_names = {};
  };
  struct Refusal {
    int status = 403;
    std::string detail;
  };

  explicit SiteCheck(Options options);

  std::optional<Refusal> Refuse(const Request& head) const;

 private:
  bool IsOwnHost(const std::string& host) const;
  bool IsAllowed(const std::string& host) const;
  bool IsOwnOrigin(std::string_view origin, const Request& head) const;

  Options options_;
};

}  // namespace tahoma::rest

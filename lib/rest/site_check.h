// Decides whether a request may come from its origin: a browser gives any page access to servers on
// its own machine, and brings what the page sends.
//
//   SiteCheck check({.address_host = "127.0.0.1", .loopback = true});
//   if (auto refusal = check.Refuse(head)) …      // {403, "the host \"evil.example\" is not …"}
//
// - Host must be a name of this server. A page whose own name was made to lead here (DNS rebinding)
//   is of the same origin for its browser, which gives it away by that name only. No browser leaves
//   Host out. An address is no name: it cannot be made to lead here.
// - Origin must be this server's, or a page's of an allowed host. Browsers send it with everything
//   but reading, and with what asks to read the answer.
// - Sec-Fetch-Site must not be cross-site: what Origin does not show, such as links and images.
// - A body from a browser must have a Content-Type. A page elsewhere may send bytes without one, as
//   kubectl create --raw and kubectl scale do; but its browser names itself, and would ask first
//   (and is never told yes) whether it may send Authorization.
//
// Scope: text; no sockets. Who calls is asked elsewhere.
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

// Whether each entry of the option allowedHosts is the name of a host, or an address without
// brackets, and has no port: kInvalidArgument that quotes the first that is not.
absl::Status CheckAllowedHosts(const std::vector<std::string>& hosts);

class SiteCheck {
 public:
  struct Options {
    std::string address_host;  // where the server listens; every interface: 0.0.0.0 or ::
    bool loopback = true;      // only this machine reaches it
    std::vector<std::string> allowed_hosts = {};  // as CheckAllowedHosts takes them
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

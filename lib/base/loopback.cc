#include "lib/base/loopback.h"

#include "lib/base/ascii.h"

namespace tahoma {

bool IsLoopbackHost(std::string_view host) {
  const bool numeric = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return EqualsIgnoringCase(host, "localhost") || host == "::1" ||
         (numeric && host.starts_with("127."));
}

bool IsLoopback(std::string_view address) {
  const std::string_view host = address.substr(0, address.rfind(':'));
  const bool bare_v6 = host.find(':') != std::string_view::npos;
  return host == "[::1]" || (!bare_v6 && IsLoopbackHost(host));
}

}  // namespace tahoma

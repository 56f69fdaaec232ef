#include "lib/base/loopback.h"

#include "lib/base/ascii.h"
#include "lib/base/host_port.h"

namespace tahoma {

bool IsLoopbackHost(std::string_view host) {
  const bool numeric = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return EqualsIgnoringCase(host, "localhost") || host == "::1" ||
         (numeric && host.starts_with("127."));
}

bool IsLoopback(std::string_view address) {
  const auto split = SplitHostPort(address);
  return split.ok() && IsLoopbackHost(split->host);
}

}  // namespace tahoma

#include "lib/rest/loopback.h"

namespace tahoma::rest {

bool IsLoopback(std::string_view address) {
  const std::string_view host = address.substr(0, address.rfind(':'));
  const bool numeric = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || host == "[::1]" || (numeric && host.starts_with("127."));
}

}  // namespace tahoma::rest

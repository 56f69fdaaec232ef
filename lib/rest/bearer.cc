#include "lib/rest/bearer.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

#include "lib/base/ascii.h"
#include "lib/base/check.h"

namespace tahoma::rest {

std::optional<std::string_view> BearerToken(std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer";
  if (!EqualsIgnoringCase(authorization.substr(0, kScheme.size()), kScheme)) return std::nullopt;
  std::string_view token = authorization.substr(kScheme.size());
  if (!token.empty() && !token.starts_with(' ')) return std::nullopt;
  token.remove_prefix(std::min(token.find_first_not_of(' '), token.size()));
  return token.substr(0, token.find_last_not_of(' ') + 1);
}

bool EqualSecrets(std::string_view given, std::string_view wanted) {
  return !wanted.empty() && given.size() == wanted.size() &&
         CRYPTO_memcmp(given.data(), wanted.data(), wanted.size()) == 0;
}

Gate TokenGate(std::string token) {
  TAHOMA_CHECK(!token.empty());
  return [token = std::move(token)](const Request& head) -> std::optional<Response> {
    const std::optional<std::string_view> given = BearerToken(head.header("Authorization"));
    if (given && EqualSecrets(*given, token)) return std::nullopt;
    return TokenRefusal(head);
  };
}

Response AskingForToken(Response refusal) {
  return std::move(refusal).With("WWW-Authenticate", "Bearer");
}

Response TokenRefusal(const Request& head) {
  const bool given = BearerToken(head.header("Authorization")).has_value();
  return AskingForToken(
      Response::Problem(401, given ? "the bearer token is not valid"
                                   : "a bearer token is needed (Authorization: Bearer …)"));
}

}  // namespace tahoma::rest

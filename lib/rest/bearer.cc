#include "lib/rest/bearer.h"

#include <openssl/crypto.h>

#include <algorithm>

#include "lib/base/ascii.h"

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

Response TokenRefusal(bool given) {
  return Response::Problem(401, given ? "the bearer token is not valid"
                                      : "a bearer token is needed (Authorization: Bearer …)")
      .With("WWW-Authenticate", "Bearer");
}

}  // namespace tahoma::rest

// The bearer token of a request: found as RFC 6750 and RFC 9110 say, and compared in silence.
//
//   const std::optional<std::string_view> given = BearerToken(request.header("Authorization"));
//   if (given && EqualSecrets(*given, wanted)) …
//
// Scope: text; who the token belongs to is the caller's business.
//
// Thread safety: pure functions.

#pragma once

#include <optional>
#include <string_view>

#include "lib/rest/message.h"

namespace tahoma::rest {

// What follows the scheme, whose name has no case (RFC 9110, 11.1), without the spaces around it;
// nothing for another scheme.
std::optional<std::string_view> BearerToken(std::string_view authorization);

// Whether both are the same, in time that depends on their lengths only. Nothing equals an empty
// secret, not even an empty text: who forgot to set one is not open to everybody.
bool EqualSecrets(std::string_view given, std::string_view wanted);

// The 401 of a request whose token is not known here, or (`given` false) that brought none.
Response TokenRefusal(bool given);

}  // namespace tahoma::rest

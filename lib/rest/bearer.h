// The bearer token of a request: found as RFC 6750 and RFC 9110 say, and compared in constant time.
//
//   server.SetGate(TokenGate("secret"));         // one caller: whoever knows the token
//
//   const std::optional<std::string_view> given = BearerToken(head.header("Authorization"));
//
// Scope: the token. controller/access knows the caller of a token.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/rest/message.h"
#include "lib/rest/server.h"

namespace tahoma::rest {

// Returns the credentials after the scheme, without the spaces around; nothing for another scheme.
// The scheme's name is case-insensitive (RFC 9110, 11.1).
std::optional<std::string_view> BearerToken(std::string_view authorization);

// Whether both are the same, in a time that depends on the lengths only. Nothing equals an empty
// secret, not even an empty text: a forgotten secret opens the server to nobody.
bool EqualSecrets(std::string_view given, std::string_view wanted);

// Admits callers with this token, which must not be empty, and answers TokenRefusal to all others.
Gate TokenGate(std::string token);

// Adds to a 401 the header that RFC 9110, 15.5.2 demands.
Response AskingForToken(Response refusal);

// The 401 for a request without a token, or with an unknown token.
Response TokenRefusal(const Request& head);

}  // namespace tahoma::rest

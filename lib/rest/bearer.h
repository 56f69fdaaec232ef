// The bearer token of a request: found as RFC 6750 and RFC 9110 say, and compared in constant time.
//
//   server.SetGate(TokenGate("secret"));         // one caller: whoever knows the token
//
//   const std::optional<std::string_view> given = BearerToken(head.header("Authorization"));
//
// Scope: the token; whom it belongs to, where there are several, is the caller's business
// (controller/access).
//
// Thread safety: pure functions.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/rest/message.h"
#include "lib/rest/server.h"

namespace tahoma::rest {

// Returns the credentials after the scheme, without the spaces around them; nothing for another
// scheme. The scheme's name is case-insensitive (RFC 9110, 11.1).
std::optional<std::string_view> BearerToken(std::string_view authorization);

// Whether both are the same, in time that depends on their lengths only. Nothing equals an empty
// secret, not even an empty text: who forgot to set one is not open to everybody.
bool EqualSecrets(std::string_view given, std::string_view wanted);

// Lets in who brings this token, which must not be empty, and answers TokenRefusal to others.
Gate TokenGate(std::string token);

// The same 401 with the header that RFC 9110, 15.5.2 wants it to have.
Response AskingForToken(Response refusal);

// The 401 of a request that brings no token, or one that is not known here.
Response TokenRefusal(const Request& head);

}  // namespace tahoma::rest

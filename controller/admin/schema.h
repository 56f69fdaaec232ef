// Schemas of the admin API's JSON, and the check of a value by one.
//
// A schema is a text in JSON Schema 2020-12, the dialect of OpenAPI 3.1, made of the words that
// these functions write; the check knows these words and no others. So one text says what a route
// takes, in the document and at the door.
//
// Scope: forms. Whether a well-formed request makes sense is its handler's affair.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/json_fwd.h"

namespace tahoma::controller {

using Schema = std::string;

// A name and its schema; a name that ends in "?" may be absent.
using Field = std::pair<std::string, Schema>;

inline constexpr std::int64_t kTextMost = 1024;
inline constexpr std::int64_t kLongTextMost = 65536;

Schema Text(std::string_view about, std::int64_t longest = kTextMost);
// Text that fits the RE2 expression as a whole; `must_be` completes "name x: must be …".
Schema TextLike(std::string_view expression, std::string_view must_be,
                std::int64_t longest = kTextMost);
Schema Word(const std::vector<std::string>& words, std::string_view about);
Schema Integer(std::int64_t least, std::int64_t most, std::string_view about);
Schema Flag(std::string_view about);
// A time in UTC, RFC 3339.
Schema Time(std::string_view about);
Schema ListOf(const Schema& items, std::string_view about, std::int64_t most = 0);
// An object whose members may have any name.
Schema MapOf(const Schema& values, std::string_view about, std::int64_t most);
Schema ObjectOf(const std::vector<Field>& fields, std::string_view about = "");
// The same, and no other member may be there: for bodies that are sent to us.
Schema BodyOf(const std::vector<Field>& fields);
// One that the document has under this name.
Schema Named(std::string_view name);

// Return what is wrong with a value, as a refusal with the code InvalidParameterValue or
// MissingParameter; `schema` is what these functions have made, without Named.
absl::Status CheckBody(const Schema& schema, const Json& value);
// The value of a query or path parameter, as sent.
absl::Status CheckParameter(const Schema& schema, std::string_view name, const std::string& text);

// Returns an integer member, also one that is written as 24.0; the value was checked before.
std::optional<std::int64_t> IntegerOf(const Json& body, std::string_view name);
// Returns a text member; empty when it is absent.
std::string TextOf(const Json& body, std::string_view name);
bool FlagOf(const Json& body, std::string_view name);

// Reads a whole number in decimal, without sign "+", spaces or anything else around it.
std::optional<std::int64_t> ParseInteger(std::string_view text);

}  // namespace tahoma::controller

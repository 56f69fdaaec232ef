// Schemas of the admin API's JSON, and the check of a value by one.
//
// A schema is a text in JSON Schema 2020-12, the dialect of OpenAPI 3.1. These functions write all
// its keywords, and the check knows only these keywords. The document and the check therefore use
// one text.
//
// Scope: forms. The handler checks the meaning of a well-formed request.
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
// As ObjectOf, but no other member may be present: for bodies of requests.
Schema BodyOf(const std::vector<Field>& fields);
// The schema that the document has under this name.
Schema Named(std::string_view name);

// Refuse a wrong value with the code InvalidParameterValue or MissingParameter. `schema` comes from
// these functions, without Named.
absl::Status CheckBody(const Schema& schema, const Json& value);
// The value of a query or path parameter, as sent.
absl::Status CheckParameter(const Schema& schema, std::string_view name, const std::string& text);

// Returns an integer member, also when written as 24.0; the value was checked before.
std::optional<std::int64_t> IntegerOf(const Json& body, std::string_view name);
// Returns a text member; empty when absent.
std::string TextOf(const Json& body, std::string_view name);
bool FlagOf(const Json& body, std::string_view name);

// Reads a whole number in decimal, without sign "+", spaces or anything else around it.
std::optional<std::int64_t> ParseInteger(std::string_view text);

}  // namespace tahoma::controller

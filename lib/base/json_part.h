// Reads the wanted part of a large JSON text, several times as fast as the whole.
//
//   const JsonPart part = {.members = {{"metadata", {.members = {{"name"}}}}, {"spec"}}};
//   Json object = TryParseJsonPart(text, part);   // metadata.name and spec, nothing else
//
// A value of the result is as TryParseJson (lib/base/json.h) gives it. A list keeps all its items,
// and of each item the part. A value that is no object or list is kept as it is.
//
// Scope: lists of an API server, of whose objects a reader needs little.
//
// Thread safety: values and pure functions.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json_fwd.h"

namespace tahoma {

struct JsonPart;

struct JsonPart {
  enum class Keep : std::uint8_t {
    kValue,  // the members, or all members where none is named
    kText,   // the value's text, as a binary value: whoever needs the value parses the text
  };
  struct Member;

  std::vector<Member> members;
  Keep keep = Keep::kValue;
};

struct JsonPart::Member {
  std::string name;
  JsonPart part = {};
};

// Returns a discarded value when the text is no JSON. Where a skipped value is no JSON, the rest
// may be returned nevertheless.
Json TryParseJsonPart(std::string_view text, const JsonPart& part);

}  // namespace tahoma

// JSON text to a value, in one pass and within bounds.
//
//   absl::StatusOr<JsonRead> body = ReadBoundedJson(text, {.depth = 32, .values = 10'000});
//   *body->value;         // of a key that comes twice, the last
//   body->duplicates;     // {"spec.members"}: the keys that came twice
//
// Scope: syntax. Nesting is bounded, so nothing that walks the value later recurses deeper.
//
// Thread safety: a pure function.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json_fwd.h"

namespace tahoma {

struct JsonBounds {
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  std::size_t depth;
  std::size_t values;           // of the whole text: each takes some 64 bytes of memory
  std::size_t members = kNone;  // of one object
  std::size_t items = kNone;    // of one list
  std::size_t duplicates = 1;   // that are named
};

struct JsonRead {
  std::shared_ptr<Json> value;          // never null
  std::vector<std::string> duplicates;  // paths, each once
};

// kResourceExhausted when the text is nested too deeply, too wide or too much, kInvalidArgument
// with the parser's words when the text is not JSON.
absl::StatusOr<JsonRead> ReadBoundedJson(std::string_view text, const JsonBounds& bounds);

}  // namespace tahoma

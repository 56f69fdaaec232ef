// JSON text to a value, in one pass.
//
//   absl::StatusOr<JsonText> body = ReadJson(request.body);
//   *body->value;         // of a key that comes twice, the last
//   body->duplicates;     // {"spec.members"}: and which those were
//
// Scope: syntax. Nesting is bounded, so nothing that walks the value later recurses deeper.
//
// Thread safety: a pure function.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

// Deeper JSON is refused.
inline constexpr int kNestingMax = 128;
// An object with more members, or a list with more items, is refused, too: the work of ordering
// members, and of tracking the owners of items, grows with the square of their number.
inline constexpr std::size_t kMembersMax = 10'000;
inline constexpr std::size_t kItemsMax = 20'000;
// And a text with more values: each takes some 64 bytes of memory, the whole text 32 MiB at most.
inline constexpr std::size_t kValuesMax = 500'000;

struct JsonText {
  std::shared_ptr<Json> value;          // never null
  std::vector<std::string> duplicates;  // paths, each once, at most kMaxCauses
};

// kResourceExhausted when it is nested too deeply, too wide or too much, kInvalidArgument with the
// parser's words when it is not JSON.
absl::StatusOr<JsonText> ReadJson(std::string_view text);

}  // namespace tahoma::controller::apiserver

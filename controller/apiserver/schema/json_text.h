// The bounds within which this server reads JSON from clients.
//
//   absl::StatusOr<JsonRead> body = ReadJson(request.body);
//
// Thread safety: a pure function.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string_view>

#include "controller/apiserver/schema/schema.h"
#include "lib/base/json_reader.h"

namespace tahoma::controller::apiserver {

inline constexpr int kNestingMax = 128;
// The work of ordering members, and of tracking the owners of items, grows with the square of their
// number.
inline constexpr std::size_t kMembersMax = 10'000;
inline constexpr std::size_t kItemsMax = 20'000;
// The whole text has 32 MiB at most.
inline constexpr std::size_t kValuesMax = 500'000;

inline absl::StatusOr<JsonRead> ReadJson(std::string_view text) {
  return ReadBoundedJson(text, {.depth = kNestingMax,
                                .values = kValuesMax,
                                .members = kMembersMax,
                                .items = kItemsMax,
                                .duplicates = kMaxCauses});
}

}  // namespace tahoma::controller::apiserver

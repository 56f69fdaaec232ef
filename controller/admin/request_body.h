// The JSON body of a request to the admin API.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Json body, ReadBody(request.body));
//
// A body in which a key comes twice is refused: readers differ about which of the two counts.
//
// Scope: the text. What the values must be is the route's schema (schema.h).
//
// Thread safety: a pure function.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string_view>

#include "lib/base/json_fwd.h"

namespace tahoma::controller {

// A body of the admin API, or a form of EC2's API, has some hundred bytes; a Gang's spec, some
// thousand. It is more than such a form may have, so that EC2's clients are told so in EC2's words.
// 64 of the largest are worked on at once, one by each thread.
inline constexpr std::size_t kAdminBodyBytesMost = 320UL << 10U;
// Values of a body, and how deep they may be nested: they take 64 bytes of memory or more each.
inline constexpr std::size_t kAdminBodyValuesMost = 10'000;
inline constexpr std::size_t kAdminBodyDepthMost = 32;
// Requests that have come in part, of all connections; and as much of answers that wait to be read,
// which are pages of 1,000 rows.
inline constexpr std::size_t kAdminBufferedBytesMost = 32UL << 20U;

// kInvalidArgument says what is wrong with the text.
absl::StatusOr<Json> ReadBody(std::string_view text);

}  // namespace tahoma::controller

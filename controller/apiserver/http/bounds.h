// The bounds of the memory that callers of the Kubernetes API can take, all callers together. With
// the program itself the sum is below 512 MiB; docs/security.md#bounds has the table.
//
// Scope: numbers. kBodyBytesMax (request/decode_body.h) and the number of values
// (schema/json_text.h) bound a single body; the HTTP server bounds time (lib/rest/server.h).
//
// Thread safety: constants.

#pragma once

#include <cstddef>

namespace tahoma::controller::apiserver {

// Requests that have come in part, and as many bytes of answers that are not stored text: 20 of the
// largest bodies.
inline constexpr std::size_t kRequestBytesMost = 64UL << 20U;
// Bodies being decoded and handled, with the values made of them: three of the largest at once, or
// thousands of usual ones.
inline constexpr std::size_t kDecodedBytesMost = 128UL << 20U;
// The memory of lists and watches that wait for their readers, beside the stored objects: a hundred
// lists of 10,000 objects, which share the objects' text.
inline constexpr std::size_t kAnswerBytesMost = 96UL << 20U;
// An access review, which any caller may send.
inline constexpr std::size_t kReviewBytesMost = 256UL << 10U;

}  // namespace tahoma::controller::apiserver

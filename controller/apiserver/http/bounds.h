// The bounds of the memory that callers of the Kubernetes API can make this server take, all of
// them together. They add up to less than 512 MiB with the program itself; docs/security.md#bounds
// has them in its table.
//
// Scope: numbers. A single body is bounded by kBodyBytesMax (request/decode_body.h) and by the
// number of its values (schema/json_text.h); time, by the HTTP server (lib/rest/server.h).
//
// Thread safety: constants.

#pragma once

#include <cstddef>

namespace tahoma::controller::apiserver {

// Requests that have come in part, and as much of answers that are not sent from what is stored: 20
// of the largest bodies.
inline constexpr std::size_t kRequestBytesMost = 64UL << 20U;
// Bodies that are being decoded and worked on, with what they become: three of the largest at once,
// or thousands of usual ones.
inline constexpr std::size_t kDecodedBytesMost = 128UL << 20U;
// What lists and watches that wait for their readers take beside what is stored: a hundred lists of
// 10,000 objects, which share the objects' own text.
inline constexpr std::size_t kAnswerBytesMost = 96UL << 20U;
// An access review, which everybody may send.
inline constexpr std::size_t kReviewBytesMost = 256UL << 10U;

}  // namespace tahoma::controller::apiserver

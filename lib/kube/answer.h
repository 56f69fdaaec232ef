// The meaning of an API server's answer: the only mapping from HTTP to Status.
//
//   absl::Status status = StatusOf(transport.Send(request));
//   if (absl::IsNotFound(status)) …
//   if (const auto error = ApiErrorOf(status)) … error->reason …
//   switch (OutcomeOf(status)) { case Outcome::kConflict: … }       // what to do now
//
// Errors of the server become: NotFound kNotFound · AlreadyExists kAlreadyExists · Conflict
// kAborted · Invalid and BadRequest kInvalidArgument · Forbidden kPermissionDenied · Unauthorized
// kUnauthenticated · Expired and Gone kOutOfRange · TooManyRequests kResourceExhausted · 503
// kUnavailable · timeouts kDeadlineExceeded · 405, 406, 415, 501 kUnimplemented · else kInternal.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/transport.h"

namespace tahoma::kube {

// What a Status object said.
struct ApiError {
  struct Cause {
    std::string reason;
    std::string message;
    std::string field;
  };
  int code = 0;
  std::string reason;  // "AlreadyExists"
  std::string message;
  std::vector<Cause> causes;
  std::optional<std::chrono::seconds> retry_after;
};

// Nothing when the error did not come from an API server.
std::optional<ApiError> ApiErrorOf(const absl::Status& status);

// The code of an error with that HTTP status and Status.reason ("" when there is none).
absl::StatusCode StatusCodeOf(int http, std::string_view reason);

// The error that an answer from 300 on stands for: redirects are not followed.
absl::Status ToStatus(const Response& response);

// The error of a Status object without an answer around it, as in a watch event of type ERROR.
absl::Status ErrorOf(const Json& status);

// OK for 2xx; otherwise the server's error, or why there is no answer.
absl::Status StatusOf(const absl::StatusOr<Response>& answer);

// The object that a 2xx answer holds. kUnavailable when that is not JSON.
absl::StatusOr<std::shared_ptr<const Json>> ObjectOf(const absl::StatusOr<Response>& answer);

enum class Outcome : std::uint8_t {
  kDone,
  kNotFound,
  kConflict,    // somebody wrote it meanwhile, or it exists already: look again
  kExpired,     // the version that was asked for is no longer kept: list again
  kRetryLater,  // no answer, or the server could not: it may or may not have been carried out
  kRefused      // the same request is refused again
};
Outcome OutcomeOf(const absl::Status& status);

// Whether a watch cannot go on from its version: it is too old, or the server has not come so far,
// as one that is behind, or that was restored from a backup.
bool IsPlaceLost(const absl::Status& status);

// How long the server asks to wait, as far as that is reasonable; nothing when it does not.
std::chrono::nanoseconds RetryAfterOf(const absl::Status& status);

}  // namespace tahoma::kube

// The meaning of an API server's answer: the only mapping from HTTP to Status.
//
//   absl::Status status = StatusOf(transport.Send(request));
//   if (absl::IsNotFound(status)) …
//   if (const auto error = ApiErrorOf(status)) Log(error->reason);
//   if (OutcomeOf(status) == Outcome::kConflict) …                  // read it again first
//
// Errors of the server become: NotFound kNotFound · AlreadyExists kAlreadyExists · Conflict
// kAborted · Invalid and BadRequest kInvalidArgument · Forbidden kPermissionDenied · Unauthorized
// kUnauthenticated · Expired and Gone kOutOfRange · TooManyRequests kResourceExhausted · 503
// kUnavailable · timeouts kDeadlineExceeded · 405, 406, 415, 501 kUnimplemented · else kInternal.

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

// The content of a Status object.
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

// Returns the API server's error; nullopt when the error did not come from one.
std::optional<ApiError> ApiErrorOf(const absl::Status& status);

// Returns the code of an error with that HTTP status and Status.reason ("" when there is none).
absl::StatusCode StatusCodeOf(int http, std::string_view reason);

// Returns the error of an answer from 300 on: redirects are not followed.
absl::Status ToStatus(const Response& response);

// Returns the error of a Status object without an answer around it, as in a watch event of type
// ERROR.
absl::Status ErrorOf(const Json& status);

// Returns OK for 2xx, otherwise the server's error or why there is no answer.
absl::Status StatusOf(const absl::StatusOr<Response>& answer);

// Returns the object that a 2xx answer holds. kUnavailable when the body is not JSON.
absl::StatusOr<std::shared_ptr<const Json>> ObjectOf(const absl::StatusOr<Response>& answer);

enum class Outcome : std::uint8_t {
  kDone,
  kNotFound,
  kConflict,    // somebody wrote it meanwhile, or it exists already: look again
  kExpired,     // the version that was asked for is no longer kept: list again
  kRetryLater,  // no answer, or the server could not: perhaps it was carried out
  kRefused      // the same request is refused again
};
Outcome OutcomeOf(const absl::Status& status);

// Returns whether a watch cannot go on from its version: the version is too old, or the server has
// not reached it, because it is behind or was restored from a backup.
bool IsPlaceLost(const absl::Status& status);

// Returns how long the server asks to wait, as far as that is reasonable; 0 when it does not ask.
std::chrono::nanoseconds RetryAfterOf(const absl::Status& status);

}  // namespace tahoma::kube

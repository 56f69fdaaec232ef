// Failures as a Kubernetes API server words them.
//
//   if (current == nullptr) return NotFoundError(kind, name);
//   …
//   return ResponseOf(status);      // {"kind":"Status","reason":"NotFound",…} and its HTTP code
//
// A failure travels as an absl::Status whose payload is the Kubernetes Status object. A Status
// without it (the disk, a mistake of ours) becomes 500 or 503.
//
// Source of texts and codes: k8s.io/apimachinery pkg/api/errors/errors.go and
// pkg/apis/meta/v1/types.go.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/schema/kind.h"
#include "lib/base/json_fwd.h"
#include "lib/rest/message.h"

namespace tahoma::controller::apiserver {

absl::Status BadRequestError(std::string_view message);
absl::Status UnauthorizedError();
absl::Status NotFoundError(const Kind& kind, std::string_view name);
absl::Status AlreadyExistsError(const Kind& kind, std::string_view name);
// 409 `Operation cannot be fulfilled on pods "x": <why>`; causes may be empty.
absl::Status ConflictError(const Kind& kind, std::string_view name, std::string_view why,
                           const std::vector<Cause>& causes = {});
// 409 of server-side apply, whose message stands alone.
absl::Status ApplyConflictError(std::string_view message, const std::vector<Cause>& causes);
// 403 `pods "x" is forbidden: <why>`.
absl::Status ForbiddenError(const Kind& kind, std::string_view name, std::string_view why,
                            const std::vector<Cause>& causes = {});
// 403 of a caller without permission: `pods "x" is forbidden: <why>`. For a path, resource and name
// are empty.
absl::Status AccessDeniedError(std::string_view group, std::string_view resource,
                               std::string_view name, std::string_view why);
// 422 of an object or, with kind "ListOptions" and an empty name, of parameters.
absl::Status InvalidError(std::string_view group, std::string_view kind, std::string_view name,
                          const std::vector<Cause>& causes);
// 422 for a JSON patch that cannot be applied; a real server does not say why.
absl::Status UnprocessableError();
// 400 for a body that does not decode: `Pod in version "v1" cannot be handled as a Pod: …`.
absl::Status UndecodableError(std::string_view kind, std::string_view version,
                              std::string_view why);
absl::Status MethodNotAllowedError();
absl::Status NoSuchPathError();
// Whether `status` is a NoSuchPathError.
bool IsNoSuchPath(const absl::Status& status);
absl::Status ExpiredError(std::string_view message);
// 504: the requested version lies in the future.
absl::Status TooLargeVersionError(std::int64_t requested, std::int64_t current);
// 415 for a patch of a built-in kind.
absl::Status UnsupportedPatchTypeError();
absl::Status UnsupportedMediaTypeError(std::string_view accepted);
absl::Status NotAcceptableError(std::string_view accepted);
absl::Status TooLargeError(std::size_t limit_bytes);
// 413 for a request that used up its processor budget. Clients give it up as it is: client-go and
// controller-runtime send again only what has Retry-After, 409, 429 or 5xx, and the same request
// would cost the same again.
absl::Status TooCostlyError(std::chrono::nanoseconds limit);
// The refusal of an admission webhook, with the details that the webhook gave; null: none.
absl::Status WebhookDeniedError(int code, std::string_view reason, std::string_view message,
                                const Json& details);
// 429 of an eviction that a budget refuses. `again_in`: seconds after which to ask again; 0 says
// nothing about that.
absl::Status TooManyRequestsError(std::string_view message, const std::vector<Cause>& causes,
                                  int again_in);
absl::Status GenericError(int code, std::string_view reason, std::string_view message);

// The Status object and its code.
Json StatusObject(const absl::Status& status);
rest::Response ResponseOf(const absl::Status& status);

// {"kind":"Status","status":"Success","details":{…}} of a delete.
Json DeletedStatus(const Kind& kind, std::string_view name, std::string_view uid);

}  // namespace tahoma::controller::apiserver

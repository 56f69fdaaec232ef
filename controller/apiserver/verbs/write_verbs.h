// create, update, patch and server-side apply, of objects and their status.
//
//   if (http.method == "POST") return Create(context, request);
//   return http.method == "PUT" ? Update(context, request) : Patch(context, request);
//
// Thread safety: from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "controller/apiserver/request/api_context.h"
#include "controller/apiserver/request/api_request.h"
#include "controller/apiserver/verbs/admission.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

absl::StatusOr<rest::Response> Create(const ApiContext& context, const ApiRequest& request);
absl::StatusOr<rest::Response> Update(const ApiContext& context, const ApiRequest& request);
absl::StatusOr<rest::Response> Patch(const ApiContext& context, const ApiRequest& request);

// Stores an admitted object in place of `current` (null: new), or deletes it if this update ends
// its deletion. For dry runs `dry_run_outcome` receives what would have been stored and nothing
// changes. The error of ApiContext::admit when the caller may not make this change, or the refusal
// of a validating webhook.
absl::StatusOr<Edit> EditOf(const ApiContext& context, WriteRequest& write,
                            const ObjectPtr& current, Json admitted, ObjectPtr& dry_run_outcome);

// The object as a body with Warning headers.
absl::StatusOr<rest::Response> Answer(const ApiContext& context, const WriteRequest& write,
                                      int status, const Object& object);

// Adds a Warning header for each.
void AddWarnings(const std::vector<std::string>& warnings, rest::Response& response);

// A JSON or merge patch applied to `document`, for subresources too; 400, 415 or 422.
absl::StatusOr<Json> ApplyPatchTo(const ApiRequest& request, const Json& document);

}  // namespace tahoma::controller::apiserver

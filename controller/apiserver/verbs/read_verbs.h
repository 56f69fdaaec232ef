// get, list and watch.
//
//   if (request.name.empty()) return ListMany(context, request);
//   return GetOne(context, request);
//
// Source of the parameter rules: k8s.io/apimachinery
// pkg/apis/meta/internalversion/validation/validation.go, k8s.io/apiserver pkg/storage/continue.go.
//
// Thread safety: from any thread.

#pragma once

#include <absl/status/statusor.h>

#include "controller/apiserver/request/api_context.h"
#include "controller/apiserver/request/api_request.h"
#include "controller/apiserver/verbs/watch_stream.h"

namespace tahoma::controller::apiserver {

absl::StatusOr<rest::Response> GetOne(const ApiContext& context, const ApiRequest& request);
absl::StatusOr<rest::Response> ListMany(const ApiContext& context, const ApiRequest& request);
// `request` may name one object (the deprecated form); it is then watched alone.
absl::StatusOr<rest::Response> Watch(const ApiContext& context, ApiRequest request);
absl::StatusOr<std::shared_ptr<WatchStream>> OpenWatch(const ApiContext& context,
                                                       ApiRequest request);

// A continue token of page `start` (a key) at `version`, and back; 400 when it is not one.
struct ContinueToken {
  std::int64_t version = 0;
  std::string start;
};
std::string EncodeContinue(const ContinueToken& token);
absl::StatusOr<ContinueToken> DecodeContinue(std::string_view text);

}  // namespace tahoma::controller::apiserver

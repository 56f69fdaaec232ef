// delete and deletecollection: preconditions, finalizers, graceful deletion of pods.
//
//   const DeleteOptions options{.grace_seconds = 0, .precondition_uid = uid};
//   const auto deleted = DeleteObject(context, pods, "default/web", options);
//   if (deleted.ok() && !deleted->gone) …               // marked: finalizers, or a grace period
//
// A bound pod with a grace period stays, marked, until its node's pod runner deletes it with grace
// period 0. Propagation: "Background" and "Foreground" and "Orphan" are carried out by the cluster
// controllers (garbage collection) through finalizers.
//
// Thread safety: from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "controller/apiserver/request/api_context.h"
#include "controller/apiserver/request/api_request.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

struct DeleteOptions {
  std::optional<std::int64_t> grace_seconds;
  std::string precondition_uid;
  std::string precondition_version;
  std::string propagation;  // "", Background, Foreground, Orphan
  bool dry_run = false;

  // Reads the options from the body, which may be empty, or else from the query.
  static absl::StatusOr<DeleteOptions> Of(const ApiRequest& request);
};

absl::StatusOr<rest::Response> DeleteOne(const ApiContext& context, const ApiRequest& request);
absl::StatusOr<rest::Response> DeleteMany(const ApiContext& context, const ApiRequest& request);

// 409 when the object is another one than the options say.
absl::Status CheckPreconditions(const Kind& kind, const Json& metadata,
                                const DeleteOptions& options);

// A deletion without webhooks: the object as it is now (marked), or its last state (gone).
struct Deletion {
  ObjectPtr object;
  bool gone = false;
};
absl::StatusOr<Deletion> DeleteObject(const ApiContext& context, const Kind& kind,
                                      const std::string& key, const DeleteOptions& options);

}  // namespace tahoma::controller::apiserver

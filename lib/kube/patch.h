// JSON merge patch (RFC 7386) and JSON patch (RFC 6902).
//
// As in kube-apiserver, and unlike the RFC, "replace" adds a member that an object lacks, and
// "test" for null holds for one (docs/reference/kubernetes-api-server.md#patches).
//
//   TAHOMA_ASSIGN_OR_RETURN(const Json changed, JsonPatch(object, operations));
//   const Json patch = MergeDiff(before, after);     // MergePatch(before, patch) == after
//
// A JSON patch spends steps of the caller's ProcessorBudget: for the values that its operations
// look at, and the items of lists that they shift.
//
// Strategic merge patch needs a schema and lives with the API server.

#pragma once

#include <absl/status/statusor.h>

#include "lib/base/json_fwd.h"

namespace tahoma::kube {

// Kubernetes' bound on the operations of one JSON patch.
inline constexpr std::size_t kPatchOperationsMax = 10'000;
// Kubernetes' bound on the bytes that its copies add together: forty copies of the whole into
// itself would make a terabyte.
inline constexpr std::size_t kPatchCopyBytesMax = 3 << 20;
// How deep a JSON patch may nest values.
inline constexpr int kPatchDepthMax = 128;

Json MergePatch(Json target, const Json& patch);

// Returns the smallest merge patch that makes `after` of `before`. `after` must hold no nulls in
// objects: a merge patch cannot write them.
Json MergeDiff(const Json& before, const Json& after);

// Applies a JSON patch. kInvalidArgument when it is malformed (operation and reason named),
// kFailedPrecondition when a path does not exist, a test does not hold or copies add too much,
// kResourceExhausted for too many operations.
absl::StatusOr<Json> JsonPatch(const Json& target, const Json& operations);

}  // namespace tahoma::kube

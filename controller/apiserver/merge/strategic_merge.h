// Strategic merge patch (application/strategic-merge-patch+json), built-in kinds only.
//
//   absl::StatusOr<Json> patched = StrategicMerge(*kind.schema, object, patch);
//
// Lists merge by the schema's merge key or by value; directives are $patch (replace, delete,
// merge), $deleteFromPrimitiveList/<field>, $setElementOrder/<field> and $retainKeys. Source: the
// Kubernetes community's design page "strategic-merge-patch".
//
// Scope: the merge. Decoding, defaults and validation of the result are the caller's.
//
// Thread safety: pure function.

#pragma once

#include <absl/status/statusor.h>

#include "controller/apiserver/schema/schema.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

// kInvalidArgument (HTTP 400 in Kubernetes) when the patch is malformed: an element without its
// merge key, an unknown directive, a list where a map is.
absl::StatusOr<Json> StrategicMerge(const Schema& schema, const Json& object, const Json& patch);

// JSON merge patch (RFC 7386) for all kinds.
Json MergePatch(const Json& object, const Json& patch);

}  // namespace tahoma::controller::apiserver

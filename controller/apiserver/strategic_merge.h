// Strategic merge patch (application/strategic-merge-patch+json), built-in kinds only.
//
//   absl::StatusOr<nlohmann::json> patched = StrategicMerge(*kind.schema, object, patch);
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

#include <nlohmann/json_fwd.hpp>

#include "controller/apiserver/schema.h"

namespace tahoma::controller {

// kInvalidArgument (HTTP 400 in Kubernetes) when the patch is malformed: an element without its
// merge key, an unknown directive, a list where a map is.
absl::StatusOr<nlohmann::json> StrategicMerge(const Schema& schema, const nlohmann::json& object,
                                              const nlohmann::json& patch);

// JSON merge patch (RFC 7386) for all kinds.
nlohmann::json MergePatch(const nlohmann::json& object, const nlohmann::json& patch);

}  // namespace tahoma::controller

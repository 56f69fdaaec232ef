// Server-side apply and field ownership (metadata.managedFields).
//
//   ApplyOptions options{.field_manager = "kubectl", .time = now};
//   absl::StatusOr<ApplyOutcome> out = Apply(kind, live, applied, options);
//   if (!out->conflicts.empty()) return Aborted("{}", ConflictMessage(out->conflicts));   // 409
//
//   // every other write: who changed a field owns it
//   TrackUpdate(kind, old_object, new_object, {.field_manager = "curl", .time = now});
//
// managedFields entries hold FieldsV1 sets: "f:name" a field, "k:{…}" an item of a keyed list,
// "v:…" an item of a set, "." the thing itself. Source: the KEP "Server-side apply" and
// structured-merge-diff's format.
//
// Scope: merging and ownership. Defaults and validation of the merged object, and whether it is
// stored, are the caller's. Defaults that are filled in afterwards belong to nobody.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/schema/kind.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

struct ApplyOptions {
  std::string field_manager;
  bool force = false;
  std::string subresource = {};  // "" or "status"
  std::string time = {};         // RFC 3339, for the managedFields entry
};

struct ApplyOutcome {
  std::shared_ptr<Json> object;
  std::vector<Cause> conflicts;  // reason FieldManagerConflict
};

// Merges `applied` into `live` (null: create). Fields that this manager applied before, leaves out
// now and owns alone are removed. With conflicts and no force the object is unchanged. When nothing
// but the time would change the object equals `live`.
// kInvalidArgument: `applied` carries managedFields, or a keyed list has a duplicate or lacks keys.
absl::StatusOr<ApplyOutcome> Apply(const Kind& kind, const Json& live, const Json& applied,
                                   const ApplyOptions& options);

// One message for all: `Apply failed with 1 conflict: conflict with "kubectl-edit": .spec.replicas`
// (several: a list by manager).
std::string ConflictMessage(const std::vector<Cause>& conflicts);

// After a create, update or patch: `new_object`'s managedFields become those of `old_object` (null:
// create) with the changed fields moved to options.field_manager's Update entry. A client that
// sends an empty managedFields list resets them.
void TrackUpdate(const Kind& kind, const Json& old_object, Json& new_object,
                 const ApplyOptions& options);

}  // namespace tahoma::controller::apiserver

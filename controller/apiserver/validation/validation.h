// Validates objects beyond their structure, as a real API server does.
//
//   std::vector<Cause> causes = ValidateCreate(kind, object);
//   if (!causes.empty()) return InvalidArgument("{}", InvalidMessage(kind.kind, name, causes));
//
// ValidateCreate and ValidateUpdate include the schema (ValidateSchema) and metadata. Call them
// after pruning and defaults, with what the server owns (uid, creationTimestamp, …) filled in.
//
// Scope: pure functions of the objects. Whether a namespace exists or a version is current is known
// to the request pipeline.
//
// Thread safety: pure functions.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/schema/kind.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

std::vector<Cause> ValidateCreate(const Kind& kind, const Json& object);

// `subresource` is "", "status" or "ephemeralcontainers"; both objects are whole. Immutable fields
// are compared here.
std::vector<Cause> ValidateUpdate(const Kind& kind, const Json& old_object, const Json& new_object,
                                  std::string_view subresource);

// Returns why the object may not be deleted now; empty when it may.
std::string WhyNotDeletable(const Kind& kind, const Json& object);

}  // namespace tahoma::controller::apiserver

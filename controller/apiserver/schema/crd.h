// Makes Kinds of a CustomResourceDefinition.
//
//   TAHOMA_ASSIGN_OR_RETURN(auto kinds, KindsOfCrd(crd));   // one per version
//
// Scope: apiextensions.k8s.io/v1 with one storage version and conversion strategy None: all
// versions hold the same fields. Webhook conversion is refused.
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

// kInvalidArgument with the path of the field that is wrong.
absl::StatusOr<std::vector<std::shared_ptr<const Kind>>> KindsOfCrd(const Json& crd);

// An openAPIV3Schema as a Schema. `path` is where it stands, for messages.
absl::StatusOr<SchemaPtr> SchemaOfOpenApi(const Json& open_api, std::string_view path);

// Returns the status that the API server writes into a new or changed CRD: acceptedNames,
// storedVersions (those of before stay) and the conditions NamesAccepted and Established (both
// True). `now` is RFC 3339.
Json EstablishedStatus(const Json& crd, std::string_view now);

}  // namespace tahoma::controller::apiserver

// Bodies that are not stored objects: a Binding, an Eviction, DeleteOptions, a Scale.
//
//   TAHOMA_RETURN_IF_ERROR(CheckTyped("io.k8s.api.core.v1.Binding", body));
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/status.h>

#include <string_view>

#include "controller/apiserver/schema/schema.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

// 400 in the words of Go's decoder when a field of `body` has another type than that type says.
absl::Status CheckTyped(std::string_view type, const Json& body);

}  // namespace tahoma::controller::apiserver

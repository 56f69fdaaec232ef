// The cells of built-in kinds, as a real API server's printers compute them.
//
// Source of the words: Kubernetes' printers for core, resource.k8s.io and coordination.k8s.io.
//
// Thread safety: pure functions.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/schema/kind.h"
#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

std::vector<Json> BuiltInCells(const Kind& kind, const Json& object, WallTime now);

// Age of an RFC 3339 time at `now`; "<unknown>" when there is none.
std::string AgeOf(const Json& time, WallTime now);

}  // namespace tahoma::controller::apiserver

// The cells of built-in kinds, as a real API server's printers compute them.
//
//   std::vector<nlohmann::json> cells = BuiltInCells(kind, object, now);   // one per column
//
// Source of the words: Kubernetes' printers for core, resource.k8s.io and coordination.k8s.io.
//
// Thread safety: pure functions.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/kind.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

std::vector<nlohmann::json> BuiltInCells(const Kind& kind, const nlohmann::json& object,
                                         WallTime now);

// Age of an RFC 3339 time at `now`; "<unknown>" when there is none.
std::string AgeOf(const nlohmann::json& time, WallTime now);

}  // namespace tahoma::controller

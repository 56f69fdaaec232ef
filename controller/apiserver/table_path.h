// JSONPath as additionalPrinterColumns use it.
//
//   std::vector<const nlohmann::json*> found = FindPath(object, ".spec.members");
//   FindPath(object, ".status.conditions[?(@.type==\"Ready\")].status");
//
// Scope: field names (`.a`, `['a']`), indices (`[0]`, `[-1]`), `[*]` and filters that compare one
// field with a literal for equality. Anything else finds nothing.
//
// Thread safety: pure function.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

namespace tahoma::controller {

std::vector<const nlohmann::json*> FindPath(const nlohmann::json& object, std::string_view path);

}  // namespace tahoma::controller

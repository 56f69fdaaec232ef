// JSONPath as additionalPrinterColumns use it.
//
// Scope: field names (`.a`, `['a']`), indices (`[0]`, `[-1]`), `[*]` and filters that compare one
// field with a literal for equality. Anything else finds nothing.
//
// Thread safety: pure function.

#pragma once

#include <string_view>
#include <vector>

#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

std::vector<const Json*> FindPath(const Json& object, std::string_view path);

}  // namespace tahoma::controller::apiserver

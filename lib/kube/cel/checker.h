// Static types of a parsed expression, as far as they are known before evaluation.
//
// Thread safety: pure function.

#pragma once

#include <absl/status/statusor.h>

#include <string_view>

#include "lib/kube/cel/parser.h"

namespace tahoma::kube::internal {

struct CelChecked {
  CelType type = CelType::kDyn;
  // True when names of attributes are read that are not written out in the expression: a computed
  // key, a macro or a comparison over all attributes.
  bool reads_unnamed = false;
};

// Finds the types. kInvalidArgument, with line and column, when operators or functions meet types
// that they have no overload for.
absl::StatusOr<CelChecked> CheckCel(std::string_view source, const CelParsed& parsed);

}  // namespace tahoma::kube::internal

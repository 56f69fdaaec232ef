// Static types of a parsed expression, as far as they are known before evaluation.
//
// Thread safety: pure function.

#pragma once

#include <absl/status/statusor.h>

#include <string_view>
#include <vector>

#include "lib/kube/cel/parser.h"
#include "lib/kube/cel/shape.h"

namespace tahoma::kube::internal {

// The static type of an expression. Of values of an object, also how its schema declares them.
struct CelStatic {
  // NOLINTNEXTLINE(google-explicit-constructor): a type alone is the common case
  CelStatic(CelType t = CelType::kDyn, const CelShape* s = nullptr) : type(t), shape(s) {}
  operator CelType() const { return type; }  // NOLINT(google-explicit-constructor)

  CelType type;
  const CelShape* shape;
};

struct CelChecked {
  CelType type = CelType::kDyn;
  // True when names of attributes are read that are not written out in the expression: a computed
  // key, a macro or a comparison over all attributes.
  bool reads_unnamed = false;
};

// Finds the types. `variables` are the types of the variables that the parser was given, in their
// order. kInvalidArgument, with line and column, when operators or functions meet types
// that they have no overload for.
absl::StatusOr<CelChecked> CheckCel(std::string_view source, const CelParsed& parsed,
                                    std::vector<CelStatic> variables);

}  // namespace tahoma::kube::internal

// Parses CEL source text to an expression with its macros expanded and its names resolved.
//
//   TAHOMA_ASSIGN_OR_RETURN(const CelParsed parsed, ParseCel("device.driver == 'x'"));
//
// Anything that is not supported (see device_selector.h) is an error with line, column and name,
// never a guess.

#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string_view>

#include "lib/kube/cel/expression.h"

namespace tahoma::kube::internal {

struct CelParsed {
  std::unique_ptr<CelExpr> root;
  std::size_t slots = 1;  // variables, `device` included
};

absl::StatusOr<CelParsed> ParseCel(std::string_view source);

}  // namespace tahoma::kube::internal

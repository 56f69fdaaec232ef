// Parses CEL source text to an expression with its macros expanded and its names resolved.
//
// Anything that is not supported (see device_selector.h) is an error with line, column and name,
// never a guess.

#pragma once

#include <absl/status/statusor.h>

#include <initializer_list>
#include <memory>
#include <string_view>

#include "lib/kube/cel/expression.h"

namespace tahoma::kube::internal {

struct CelParsed {
  std::unique_ptr<CelExpr> root;
  std::size_t slots = 0;  // of the variables that were given, and then of those of macros
};

absl::StatusOr<CelParsed> ParseCel(std::string_view source,
                                   std::initializer_list<std::string_view> variables);

}  // namespace tahoma::kube::internal

// CEL expressions over JSON values with names, without a schema: the match conditions of admission
// webhooks.
//
//   auto condition = NamedExpression::Compile("object.metadata.name != 'x'", {"object"});
//   absl::StatusOr<bool> holds = condition->Evaluate({&object});
//
// The types of the values are known only when the expression is evaluated; null is a value. The
// language is that of device_selector.h; anything else is a compile error that names it and where
// it is.
//
// Thread safety: immutable; Evaluate may be called from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "lib/base/json_fwd.h"

namespace tahoma::kube {

class NamedExpression {
 public:
  // Compiles an expression with a bool as its result. kInvalidArgument: "1:1: undeclared reference
  // to 'authorizer'", or "must evaluate to a bool".
  static absl::StatusOr<NamedExpression> Compile(std::string_view source,
                                                 std::initializer_list<std::string_view> names);

  ~NamedExpression();
  NamedExpression(NamedExpression&&) noexcept;
  NamedExpression& operator=(NamedExpression&&) noexcept;

  // Returns the result or the run-time error; `values` are those of the names, in their order.
  absl::StatusOr<bool> Evaluate(const std::vector<const Json*>& values) const;

 private:
  struct Compiled;
  explicit NamedExpression(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace tahoma::kube

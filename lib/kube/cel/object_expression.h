// CEL expressions over an object of the API: the rules of a CustomResourceDefinition and their
// messages.
//
//   auto rule = ObjectExpression::Compile("self.min <= self.max", shape, {});
//   const auto [value, cost] = rule->Evaluate(object, nullptr);
//
// Variables: `self`, the value that the rule stands at, and `oldSelf`, the same value before the
// change. Types are those that the schema declares (shape.h). The language is that of
// device_selector.h; anything else is a compile error that names it and where it is.
//
// Thread safety: immutable; Evaluate may be called from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "lib/base/json_fwd.h"
#include "lib/kube/cel/shape.h"
#include "lib/kube/cel/value.h"

namespace tahoma::kube {

// k8s.io/apiserver pkg/apis/cel/config.go: PerCallLimit. Our cost is that of device_selector.h.
inline constexpr std::uint64_t kObjectExpressionCostMax = 1'000'000;

class ObjectExpression {
 public:
  struct Options {
    CelType result = CelType::kBool;
    bool optional_old_self = false;  // oldSelf is an optional
  };
  struct Evaluation {
    absl::StatusOr<CelValue> value;  // of the wanted type
    std::uint64_t cost = 0;
  };

  // Compiles an expression over a value of that shape. kInvalidArgument: "1:6: undefined field
  // 'x'", or "must evaluate to a bool" when the expression has another result.
  static absl::StatusOr<ObjectExpression> Compile(std::string_view source, CelShapePtr self,
                                                  Options options);

  ~ObjectExpression();
  ObjectExpression(ObjectExpression&&) noexcept;
  ObjectExpression& operator=(ObjectExpression&&) noexcept;

  bool uses_old_self() const;

  // Returns the value or the run-time error. `old_self` is null where there is none; an expression
  // that uses it without options may not be evaluated then.
  Evaluation Evaluate(const Json& self, const Json* old_self) const;

 private:
  struct Compiled;
  explicit ObjectExpression(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace tahoma::kube

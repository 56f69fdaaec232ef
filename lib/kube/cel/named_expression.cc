#include "lib/kube/cel/named_expression.h"

#include <utility>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/processor_budget.h"
#include "lib/base/status.h"
#include "lib/kube/cel/checker.h"
#include "lib/kube/cel/evaluator.h"
#include "lib/kube/cel/object_expression.h"
#include "lib/kube/cel/parser.h"

namespace tahoma::kube {
namespace {

CelValue ValueOf(const Json& value) {
  ProcessorBudget::Spend();
  if (value.is_array()) {
    CelValue::List list;
    for (const Json& entry : value) list.push_back(ValueOf(entry));
    return CelValue(std::move(list));
  }
  if (!value.is_object()) return ToCelValue(value, {});
  CelValue::Map map;
  for (const auto& [name, member] : MembersOf(value)) {
    map.emplace_back(CelValue(name), ValueOf(member));
  }
  return CelValue(std::move(map));
}

}  // namespace

struct NamedExpression::Compiled {
  internal::CelParsed parsed;
  std::size_t names = 0;
};

NamedExpression::NamedExpression(std::unique_ptr<Compiled> compiled)
    : compiled_(std::move(compiled)) {}
NamedExpression::~NamedExpression() = default;
NamedExpression::NamedExpression(NamedExpression&&) noexcept = default;
NamedExpression& NamedExpression::operator=(NamedExpression&&) noexcept = default;

absl::StatusOr<NamedExpression> NamedExpression::Compile(
    std::string_view source, std::initializer_list<std::string_view> names) {
  auto compiled = std::make_unique<Compiled>();
  compiled->names = names.size();
  TAHOMA_ASSIGN_OR_RETURN(compiled->parsed, internal::ParseCel(source, names));
  TAHOMA_ASSIGN_OR_RETURN(
      const internal::CelChecked checked,
      internal::CheckCel(source, compiled->parsed,
                         std::vector<internal::CelStatic>(names.size(), CelType::kDyn)));
  if (checked.type != CelType::kBool && checked.type != CelType::kDyn) {
    return InvalidArgument("must evaluate to a bool");
  }
  return NamedExpression(std::move(compiled));
}

absl::StatusOr<bool> NamedExpression::Evaluate(const std::vector<const Json*>& values) const {
  TAHOMA_CHECK(values.size() == compiled_->names);
  std::vector<CelValue> variables;
  for (const Json* value : values) variables.push_back(ValueOf(*value));
  internal::CelEvaluator evaluator(std::move(variables), compiled_->parsed.slots,
                                   kObjectExpressionCostMax);
  TAHOMA_ASSIGN_OR_RETURN(const CelValue result, evaluator.Evaluate(*compiled_->parsed.root));
  if (const bool* holds = result.As<bool>()) return *holds;
  return internal::NoSuchOverload(fmt::format("a result of the type {}", ToString(result.type())));
}

}  // namespace tahoma::kube

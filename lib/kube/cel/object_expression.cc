#include "lib/kube/cel/object_expression.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/kube/cel/checker.h"
#include "lib/kube/cel/evaluator.h"
#include "lib/kube/cel/parser.h"

namespace tahoma::kube {
namespace {

using internal::CelExpr;
using internal::CelOp;

constexpr std::size_t kOldSelfSlot = 1;

bool Reads(const CelExpr& e, std::size_t slot) {
  if (e.op == CelOp::kVariable && e.slot == slot) return true;
  return std::any_of(e.args.begin(), e.args.end(),
                     [&](const auto& arg) { return Reads(*arg, slot); });
}

// Makes lists of literals literals, so that they are made once.
void FoldLists(CelExpr& e) {
  for (const auto& arg : e.args) FoldLists(*arg);
  if (e.op != CelOp::kList) return;
  CelValue::List list;
  for (std::size_t i = 0; i < e.args.size(); ++i) {
    if (e.args[i]->op != CelOp::kLiteral || e.optional_args[i]) return;
    list.push_back(e.args[i]->literal);
  }
  e.op = CelOp::kLiteral;
  e.literal = CelValue(std::move(list));
  e.args.clear();
}

}  // namespace

struct ObjectExpression::Compiled {
  CelShapePtr shape;
  Options options;
  internal::CelParsed parsed;
  bool uses_old_self = false;
};

ObjectExpression::ObjectExpression(std::unique_ptr<Compiled> compiled)
    : compiled_(std::move(compiled)) {}
ObjectExpression::~ObjectExpression() = default;
ObjectExpression::ObjectExpression(ObjectExpression&&) noexcept = default;
ObjectExpression& ObjectExpression::operator=(ObjectExpression&&) noexcept = default;

absl::StatusOr<ObjectExpression> ObjectExpression::Compile(std::string_view source,
                                                           CelShapePtr self, Options options) {
  auto compiled = std::make_unique<Compiled>();
  TAHOMA_ASSIGN_OR_RETURN(compiled->parsed, internal::ParseCel(source, {"self", "oldSelf"}));
  const internal::CelStatic type(self->type, self.get());
  const internal::CelStatic old_type =
      options.optional_old_self ? internal::CelStatic(CelType::kOptional) : type;
  TAHOMA_ASSIGN_OR_RETURN(const internal::CelChecked checked,
                          internal::CheckCel(source, compiled->parsed, {type, old_type}));
  if (checked.type != options.result && checked.type != CelType::kDyn) {
    return InvalidArgument("must evaluate to a {}", ToString(options.result));
  }
  compiled->shape = std::move(self);
  compiled->options = options;
  compiled->uses_old_self = Reads(*compiled->parsed.root, kOldSelfSlot);
  FoldLists(*compiled->parsed.root);
  return ObjectExpression(std::move(compiled));
}

bool ObjectExpression::uses_old_self() const { return compiled_->uses_old_self; }

ObjectExpression::Evaluation ObjectExpression::Evaluate(const Json& self,
                                                        const Json* old_self) const {
  const CelShape& shape = *compiled_->shape;
  const bool optional = compiled_->options.optional_old_self;
  TAHOMA_CHECK(old_self != nullptr || optional || !compiled_->uses_old_self);
  std::vector<CelValue> variables = {ToCelValue(self, shape)};
  if (old_self == nullptr) {
    variables.emplace_back(CelValue::Optional{});
  } else {
    CelValue old = ToCelValue(*old_self, shape);
    variables.push_back(
        optional ? CelValue(CelValue::Optional{std::make_shared<const CelValue>(std::move(old))})
                 : std::move(old));
  }
  internal::CelEvaluator evaluator(std::move(variables), compiled_->parsed.slots,
                                   kObjectExpressionCostMax);
  absl::StatusOr<CelValue> value = evaluator.Evaluate(*compiled_->parsed.root);
  if (value.ok() && value->type() != compiled_->options.result) {
    value =
        internal::NoSuchOverload(fmt::format("a result of the type {}", ToString(value->type())));
  }
  return {.value = std::move(value), .cost = kObjectExpressionCostMax - evaluator.cost_left()};
}

}  // namespace tahoma::kube

#include "controller/allocate/constraints.h"

#include <algorithm>
#include <utility>

namespace tahoma::controller::allocate {
namespace {

using Values = ConstraintState::Values;

bool Contains(const Values& values, const kube::AttributeValue& value) {
  return std::ranges::any_of(values, [&](const auto* one) { return *one == value; });
}

Values Common(const Values& a, const Values& b) {
  Values common;
  for (const kube::AttributeValue* value : a) {
    if (Contains(b, *value)) common.push_back(value);
  }
  return common;
}

}  // namespace

ConstraintState::ConstraintState(const kube::Constraint& constraint, bool lists)
    : constraint_(&constraint),
      attribute_(kube::ParseQualifiedName(constraint.attribute, "")),
      lists_(lists) {}

Values ConstraintState::ValuesOf(const Candidate& candidate) const {
  const auto* scalar = candidate.device().Find(attribute_.domain, attribute_.id);
  if (scalar != nullptr) return {scalar};
  Values values;
  if (!lists_) return values;
  for (const kube::ListAttribute& list : candidate.details().lists) {
    if (list.name != attribute_) continue;
    for (const kube::AttributeValue& value : list.values) values.push_back(&value);
  }
  return values;
}

bool ConstraintState::AddValues(Values values) {
  if (values.empty()) return false;
  if (constraint_->distinct) {
    const auto meets = [&](const Values& before) { return !Common(before, values).empty(); };
    if (std::ranges::any_of(chosen_, meets)) return false;
  } else if (!chosen_.empty()) {
    values = Common(chosen_.back(), values);
    if (values.empty()) return false;
  }
  chosen_.push_back(std::move(values));
  return true;
}

bool SameValues(const Values& a, const Values& b) {
  return std::ranges::equal(a, b, [](const auto* x, const auto* y) { return *x == *y; });
}

}  // namespace tahoma::controller::allocate

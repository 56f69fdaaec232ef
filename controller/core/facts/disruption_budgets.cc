#include "controller/core/facts/disruption_budgets.h"

#include <utility>

namespace tahoma::controller {

void DisruptionBudgets::Put(std::shared_ptr<const BudgetFact> budget) {
  auto& known = by_namespace_[budget->metadata.ns][budget->metadata.name];
  known = std::move(budget);
}

void DisruptionBudgets::Remove(const std::string& ns, const std::string& name,
                               const std::string& uid) {
  const auto space = by_namespace_.find(ns);
  if (space == by_namespace_.end()) return;
  const auto known = space->second.find(name);
  if (known == space->second.end()) return;
  if (!uid.empty() && known->second->metadata.uid != uid) return;
  space->second.erase(known);
  if (space->second.empty()) by_namespace_.erase(space);
}

void DisruptionBudgets::ForEachGuarding(const std::string& ns, const kube::Labels& labels,
                                        absl::FunctionRef<void(const BudgetFact&)> f) const {
  const auto space = by_namespace_.find(ns);
  if (space == by_namespace_.end()) return;
  for (const auto& [name, budget] : space->second) {
    if (budget->Guards(ns, labels)) f(*budget);
  }
}

}  // namespace tahoma::controller

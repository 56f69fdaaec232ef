// The PodDisruptionBudgets, by namespace: which of them guard a pod.
//
// Scope: values. Which gangs may be ended: core/queue/budget_room.h.
//
// Thread safety: belongs to one thread; the budgets are immutable.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/functional/function_ref.h>

#include <map>
#include <memory>
#include <string>

#include "lib/kube/objects/disruption_budget.h"
#include "lib/kube/objects/metadata.h"

namespace tahoma::controller {

using BudgetFact = kube::DisruptionBudget;

class DisruptionBudgets {
 public:
  void Put(std::shared_ptr<const BudgetFact> budget);
  // Removes the budget, when `uid` is not empty only if it is of that uid.
  void Remove(const std::string& ns, const std::string& name, const std::string& uid);
  bool empty() const { return by_namespace_.empty(); }

  void ForEachGuarding(const std::string& ns, const kube::Labels& labels,
                       absl::FunctionRef<void(const BudgetFact&)> f) const;

 private:
  using ByName = std::map<std::string, std::shared_ptr<const BudgetFact>>;
  absl::flat_hash_map<std::string, ByName> by_namespace_;
};

}  // namespace tahoma::controller

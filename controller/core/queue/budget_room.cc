#include "controller/core/queue/budget_room.h"

#include <algorithm>

namespace tahoma::controller {

// Returns how many pods of the run each budget guards.
BudgetRoom::Counts BudgetRoom::PodsOf(const GangRun& run) const {
  Counts counts;
  if (facts_.budgets.empty()) return counts;
  const GangDecision& decision = run.decision();
  for (const DecidedPod& one : decision.pods) {
    const auto pod = facts_.pods.Find(PodKey{decision.key.ns, one.name});
    if (pod == nullptr || pod->uid != one.uid || pod->finished || !pod->running) continue;
    facts_.budgets.ForEachGuarding(decision.key.ns, pod->labels,
                                   [&](const BudgetFact& budget) { ++counts[&budget]; });
  }
  return counts;
}

bool BudgetRoom::Fits(const Counts& pods, const Counts& spent) {
  return std::ranges::all_of(pods, [&](const auto& one) {
    const auto before = spent.find(one.first);
    return one.second + (before == spent.end() ? 0 : before->second) <= one.first->allowed;
  });
}

void BudgetRoom::Spend(const GangRun& run) {
  for (const auto& [budget, pods] : PodsOf(run)) spent_[budget] += pods;
}

bool BudgetRoom::MayEnd(const GangRun& run) const { return Fits(PodsOf(run), spent_); }

std::vector<std::size_t> BudgetRoom::Beyond(std::span<const GangRun* const> runs) const {
  std::vector<std::size_t> beyond;
  Counts spent = spent_;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Counts pods = PodsOf(*runs[i]);
    if (!Fits(pods, spent)) {
      beyond.push_back(i);
      continue;
    }
    for (const auto& [budget, count] : pods) spent[budget] += count;
  }
  return beyond;
}

}  // namespace tahoma::controller

// How many runs PodDisruptionBudgets let end for other gangs, beside runs that end already.
//
// A gang ends as a whole, so each budget must allow the end of all pods of the gang that the budget
// guards. A pod counts while the pod runs, as for an eviction. A pod of several budgets counts in
// each.
//
// Scope: arithmetic on facts. Which runs are ended: preemption.h.
//
// Thread safety: belongs to one thread, while nobody changes the facts.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "controller/core/commit/gang_run.h"
#include "controller/core/facts/facts.h"

namespace tahoma::controller {

class BudgetRoom {
 public:
  // `facts` outlives it.
  explicit BudgetRoom(const Facts& facts) : facts_(facts) {}

  // Counts a run that ends already: the status of budgets may not show the end yet.
  void Spend(const GangRun& run);
  bool MayEnd(const GangRun& run) const;
  // Returns the indexes of the runs that cannot end together with the runs before.
  std::vector<std::size_t> Beyond(std::span<const GangRun* const> runs) const;

 private:
  using Counts = absl::flat_hash_map<const BudgetFact*, std::int64_t>;

  Counts PodsOf(const GangRun& run) const;
  static bool Fits(const Counts& pods, const Counts& spent);

  const Facts& facts_;
  Counts spent_;
};

}  // namespace tahoma::controller

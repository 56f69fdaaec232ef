// Policies to compare with: first fit, EASY backfilling and conservative backfilling.
//
// All three serve jobs by priority and then by age, in the places of the planner. First fit starts
// every job with a place, no matter which jobs wait before. EASY promises the first job without a
// place the earliest place, by the limits of the running jobs; another job starts only if the
// promise can be kept. Conservative backfilling promises every job a time and a place when the job
// comes; only failures make a promise later, and early ends let promises move ahead, in their
// order.
//
// Scope: whole gangs, never ended before their time; queues and shares are not looked at.
//
// Thread safety: one thread.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "controller/model/inventory.h"
#include "controller/replay/replay_policy.h"

namespace tahoma::controller {

enum class BaselineKind : std::uint8_t { kFirstFit, kEasy, kConservative };

// `jobs` outlives the policy.
std::unique_ptr<ReplayPolicy> MakeBaseline(BaselineKind kind, const ReplayJobs& jobs,
                                           std::vector<NodeFacts> nodes);

}  // namespace tahoma::controller

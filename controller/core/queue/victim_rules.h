// Which runs may end for a gang: the same rules for those who end runs and for questions.
//
//   const std::vector<Eighths> needs = PossibleNeeds(gang, shares);
//   if (MayEndFor(gang, needs, decision, shares)) {
//     among.push_back(RunningOf(decision, work, begun));
//   }
//
// Scope: rules for one run. The choice among runs: plan/victims.h.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "controller/core/journal/gang_decision.h"
#include "controller/model/gang.h"
#include "controller/plan/room_by_ending.h"
#include "controller/share/queue_shares.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// Returns what the gang may need, as far as claims tell: as much of one type, any. None without
// queues (`shares` is nullptr).
std::vector<Eighths> PossibleNeeds(const GangSpec& gang, const QueueShares* shares);

// Returns whether the gang's queue lets the run of the decision end for some of the needs. Without
// queues, and inside a queue, priority counts.
bool MayEndFor(const GangSpec& gang, std::span<const Eighths> needs, const GangDecision& decision,
               const QueueShares* shares);

// Returns the run for the searches of controller/plan. `work` would be lost: chip-seconds.
RunningGang RunningOf(const GangDecision& decision, std::int64_t work, WallTime begun);

}  // namespace tahoma::controller

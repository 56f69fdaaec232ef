// Answers what would have to move so that a gang gets a place, without moving anything.
//
//   const auto plan = AskMoves(snapshot, {.gang = wanted, .moves_most = 4}, now, planner);
//   if (plan.ok()) Show(plan->moves);
//
// Promised hardware is nobody else's: neither the wanted gang nor a moved gang gets any.
//
// Thread safety: a pure function, but for the planner's memory.

#pragma once

#include <absl/status/statusor.h>

#include "controller/core/queue/move_plan.h"
#include "controller/core/snapshot.h"
#include "controller/timeline/timeline.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// kFailedPrecondition where no set of moves makes the place, with a sentence for people.
absl::StatusOr<MovePlan> AskMoves(const Snapshot& snapshot, const MoveWish& wish, WallTime now,
                                  const PlanFunction& plan);

}  // namespace tahoma::controller

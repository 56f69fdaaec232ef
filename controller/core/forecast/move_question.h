// Answers what would have to move so that a gang gets a place, without moving anything.
//
//   MoveQuestion question;
//   const auto plan = question.Ask(snapshot, {.gang = wanted, .moves_most = 4}, now);
//   if (plan.ok()) Show(plan->moves);
//
// Promised hardware is nobody else's: neither the wanted gang nor a moved gang gets any.
//
// Scope: pure but for what the planner remembers, which changes no answer.
//
// Thread safety: a MoveQuestion belongs to one thread at a time.

#pragma once

#include <absl/status/statusor.h>

#include "controller/core/queue/move_plan.h"
#include "controller/core/snapshot.h"
#include "controller/plan/planner.h"
#include "controller/timeline/timeline.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// kFailedPrecondition where no set of moves makes the place, with a sentence for people.
absl::StatusOr<MovePlan> AskMoves(const Snapshot& snapshot, const MoveWish& wish, WallTime now,
                                  const PlanFunction& plan);

class MoveQuestion {
 public:
  absl::StatusOr<MovePlan> Ask(const Snapshot& snapshot, const MoveWish& wish, WallTime now);

 private:
  Planner planner_;
};

}  // namespace tahoma::controller

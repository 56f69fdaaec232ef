// Which running gangs would move, and where to, so that a wanted gang gets a place.
//
//   const auto plan = PlanMovesIn(fleet, runs, {.gang = wanted}, now, planner);
//   if (plan.ok()) Show(plan->moves, plan->wanted);
//   else Say(plan.status());        // with the gangs that stay, and why
//
// Among the runs that may move (movable_run.h) the cheapest set moves (plan/defragment.h). At most
// kMovableRunsMost runs are looked at: those in the topology domains that cost least to clear.
//
// Scope: the plan of one moment. Nothing ends and nothing is kept.
//
// Failures: kFailedPrecondition where no set of moves makes the place.
//
// Thread safety: a pure function, but for the planner's memory.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "controller/core/queue/movable_run.h"
#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "controller/plan/decision.h"
#include "controller/timeline/promise.h"
#include "controller/timeline/timeline.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

struct MoveWish {
  std::shared_ptr<const GangSpec> gang;  // wants the place
  // UltraServers that are free now do not count: the place must be gained by moves.
  bool gains_ultra_servers = false;
  std::size_t moves_most = 10;
};

struct PlannedMove {
  std::shared_ptr<const MovableRun> run;
  Placement to;
  std::int64_t work = 0;  // lost by the move: chip-seconds
};

struct MovePlan {
  std::vector<PlannedMove> moves;  // in the order in which they are made
  Placement wanted;                // free when the last move is done
  std::int64_t work = 0;           // of all moves
};

// How many runs one plan looks at most.
inline constexpr std::size_t kMovableRunsMost = 1024;

// `fleet` has what the wanted gang and the moved gangs may not use held: promises to others. `runs`
// are the bound runs of the fleet, in any order; entries may be nullptr.
absl::StatusOr<MovePlan> PlanMovesIn(const ClusterState& fleet,
                                     std::span<const std::shared_ptr<const MovableRun>> runs,
                                     const MoveWish& wish, WallTime now, const PlanFunction& plan);

// Holds the promised hardware in a copy of the fleet.
void HoldPromises(std::span<const std::shared_ptr<const Promise>> promises, ClusterState& fleet);

}  // namespace tahoma::controller

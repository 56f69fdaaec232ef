// A bound run as whoever wants to move the run sees it: from where, what the move would lose, and
// why the run may not be moved.
//
//   const auto movable = MovableOf(run, facts, "us-0 4x4x2+0,0,0", before);
//   if (const std::string why = StaysBecause(*movable, now); !why.empty()) Say(why);
//
// A run moves where the run's end costs little and somebody makes the pods anew: the gang is
// checkpointable, and is preemptible or tells of the gang's checkpoints by an annotation; each pod
// has an owner; minRuntime is over. A pod without a Gang stays, as the pod's next has another name.
//
// Scope: a value and who may move. Which runs move: move_plan.h.
//
// Thread safety: immutable values; pure functions.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "controller/core/commit/gang_run.h"
#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/model/gang.h"
#include "controller/plan/room_by_ending.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

struct MovableRun {
  GangRef gang;
  RunId run = 0;
  std::shared_ptr<const GangDecision> decision;
  // The gang as before the decision, so that the planner finds the gang another place; nullptr
  // where `stays` says why the run may not be moved.
  std::shared_ptr<const GangSpec> spec;
  std::string stays;
  std::string from;  // for people: "us-0 4x4x2+0,0,0"
  std::int64_t devices = 0;
  WallTime begun;
  WallTime since;                      // the work since then is lost
  std::optional<WallTime> kept_until;  // the end of minRuntime
};

// Returns what is known of the bound run. `before` is the last result for the same run, or nullptr:
// with the same decision the spec is taken from there.
std::shared_ptr<const MovableRun> MovableOf(const GangRun& run, const Facts& facts,
                                            std::string from, const MovableRun* before);

// Returns why the run may not be moved now, as the end of a sentence; "" when the run may.
std::string StaysBecause(const MovableRun& run, WallTime now);

// Returns the work that a move at that time loses: chip-seconds.
std::int64_t WorkLostBy(const MovableRun& run, WallTime now);

// Returns the run for the searches of controller/plan.
RunningGang RunningOf(const MovableRun& run, WallTime now);

}  // namespace tahoma::controller

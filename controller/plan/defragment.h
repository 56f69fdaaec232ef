// Which running gangs move so that a wanted gang gets a place: the cheapest set, each with a place
// of its own.
//
// The place of a move is free when each earlier move is done, and is apart from the wanted place.
// The cost of a set is the sum of RunningGang::work: chips times the age of the checkpoint and the
// time to restore. Sets are tried from the cheapest on, up to kSetsMost: a set that frees the
// wanted place, but leaves a moving gang without a place, is tried again with gangs beside.
//
// More free UltraServers are planned as a wanted gang of as many 4x4x4 slices.
//
// Failures: kFailedPrecondition where no set does or is found, with a sentence for people.
//
// Scope: the plan. Who may move, and what a move costs, says the caller.
//
// Thread safety: a pure function.

#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "controller/plan/decision.h"
#include "controller/plan/room_by_ending.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// A gang that runs and may start again elsewhere.
struct MovableGang {
  RunningGang run;
  std::shared_ptr<const GangSpec> spec;  // as when it was placed: none of its claims is allocated
};

struct Move {
  std::size_t gang = 0;  // index of the movable gangs
  Placement to;
};

struct Defragmentation {
  std::vector<Move> moves;  // in the order in which they are made
  Placement wanted;         // free when the last move is done
  std::int64_t cost = 0;
};

struct MoveBounds {
  std::size_t moves = 0;  // the most
};

// Returns a gang's place in a fleet.
using PlaceOneFunction = absl::FunctionRef<std::optional<Placement>(
    const ClusterState&, const std::shared_ptr<const GangSpec>&)>;

// How many sets of gangs are tried at most.
inline constexpr std::size_t kSetsMost = 128;

absl::StatusOr<Defragmentation> PlanMoves(const ClusterState& view,
                                          const std::shared_ptr<const GangSpec>& wanted,
                                          std::span<const MovableGang> movable,
                                          const MoveBounds& bounds, WallTime now,
                                          PlaceOneFunction place);

}  // namespace tahoma::controller

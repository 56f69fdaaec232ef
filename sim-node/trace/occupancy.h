// Which links a collective keeps busy, and when.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Occupancy use, OccupancyOf(plan, links));
//   use.utilisation[TorusLinks::IdOf(chip, Axis::kX, Direction::kPlus)];      // 0.97
//
// A link is busy in a step from the departure until the last message that crosses it has arrived,
// or until the messages of the next step follow it.
// Its utilisation is what it carried, of what it could have carried from the collective's start to
// its end.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim-node/collective/plan.h"
#include "sim-node/engine/virtual_time.h"
#include "sim-node/link/torus_links.h"

namespace tahoma::sim {

struct LinkUse {
  LinkId link = 0;
  std::size_t step = 0;
  VirtualTime begin;
  VirtualTime end;
  std::uint64_t bytes = 0;
};

struct Occupancy {
  VirtualTime start;
  VirtualTime end;
  std::vector<LinkUse> uses;        // in order of step, then link
  std::vector<double> utilisation;  // by link id, 0 to 1; 0 where there is no link
};

// `links` as the plan was made with. kFailedPrecondition when a message has no route on them.
absl::StatusOr<Occupancy> OccupancyOf(const Plan& plan, const TorusLinks& links);

}  // namespace tahoma::sim

// Finds when a collective keeps each link busy, and what its chips do meanwhile.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Occupancy use, OccupancyOf(plan, fabric, /*timeline=*/true));
//   use.utilisation[fabric.LinkOf(chip, torus::Axis::kX, torus::Direction::kPlus)];    // 0.97
//   use.utilisation[fabric.NicOf(chip, NicDirection::kOut)];                           // 0.88
//
// A link is busy in a scheduled step from the departure until the last message that crosses it has
// arrived, or until the messages of the next one follow it. For messages between topology domains,
// the NICs and all uplinks of the route count, also those that never limit. The utilisation of a
// link is the share of its capacity from the collective's start to its end that it carried.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim-node/emulator/collective/plan/plan.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {

struct LinkUse {
  LinkId link = 0;
  std::size_t step = 0;
  VirtualTime begin;
  VirtualTime end;
  std::uint64_t bytes = 0;
};

// The work of the chips for a scheduled step. The busiest of them decides, the others do the same
// or less.
struct ChipWork {
  std::size_t step = 0;
  // The row to show it in, which is free then.
  std::size_t row = 0;
  // CC-cores give the commands and DMA engines start; then the step may wait for the links.
  VirtualTime start_begin;
  VirtualTime start_end;
  // HBM is read and written.
  VirtualTime memory_begin;
  VirtualTime memory_end;
  int domain = 0;  // whose HBM
};

struct Occupancy {
  VirtualTime start;
  VirtualTime end;
  std::vector<ChipWork> work;       // of each scheduled step
  std::vector<LinkUse> uses;        // in order of scheduled step, then link; the timeline
  std::vector<double> utilisation;  // by link id, 0 to 1; 0 where there is no link
};

// More would make no file that a viewer opens.
inline constexpr std::size_t kMaxUses = 2'000'000;

// `fabric` as the plan was made with. Without `timeline` there are no uses, and many domains take
// little longer than one of each kind. kFailedPrecondition when a message has no route,
// kResourceExhausted for a timeline of more than kMaxUses.
absl::StatusOr<Occupancy> OccupancyOf(const Plan& plan, const Fabric& fabric, bool timeline);

}  // namespace tahoma::sim

// Which links a collective keeps busy, and when; and what its chips do meanwhile.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Occupancy use, OccupancyOf(plan, fabric));
//   use.utilisation[fabric.LinkOf(chip, Axis::kX, Direction::kPlus)];      // 0.97
//   use.utilisation[fabric.NicOf(chip, NicDirection::kOut)];               // 0.88
//
// A link is busy in a turn (a step, unless the schedule has turns) from the departure until the
// last message that crosses it has arrived, or until the messages of the next turn follow it. Of
// messages between units, the NICs and all uplinks on the way count, also those that never limit.
// Its utilisation is what it carried, of what it could have carried from the collective's start to
// its end.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim-node/collective/plan/plan.h"
#include "sim-node/engine/virtual_time.h"
#include "sim-node/link/fabric.h"

namespace tahoma::sim {

struct LinkUse {
  LinkId link = 0;
  std::size_t step = 0;
  VirtualTime begin;
  VirtualTime end;
  std::uint64_t bytes = 0;
};

// What the chips do for a turn. The busiest of them decides, the others do the same or less.
struct ChipWork {
  std::size_t step = 0;
  // Of the buffers; with turns, a number that no other has at the same time.
  std::size_t slice = 0;
  // CC-cores give the commands and DMA engines start; then the step may wait for the links.
  VirtualTime start_begin;
  VirtualTime start_end;
  // HBM is read and written.
  VirtualTime memory_begin;
  VirtualTime memory_end;
  int unit = 0;  // whose HBM
};

struct Occupancy {
  VirtualTime start;
  VirtualTime end;
  std::vector<ChipWork> work;       // of each turn
  std::vector<LinkUse> uses;        // in order of turn, then link
  std::vector<double> utilisation;  // by link id, 0 to 1; 0 where there is no link
};

// More would make no file that a viewer opens.
inline constexpr std::size_t kMaxUses = 2'000'000;

// `fabric` as the plan was made with. kFailedPrecondition when a message has no route on it,
// kResourceExhausted for more than kMaxUses.
absl::StatusOr<Occupancy> OccupancyOf(const Plan& plan, const Fabric& fabric);

}  // namespace tahoma::sim

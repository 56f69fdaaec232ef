// What schedules cost on the links, in virtual time.
//
//   auto times = TimeSchedules({&schedule}, fabric);
//   (*times)[0].end - (*times)[0].start;
//
// A turn begins when all messages of the turns that it comes after have arrived (see schedule.h for
// steps and slices); it costs LinkTiming::step of software and what StepWork says, then all its
// sends flow at once (sends between the same two chips are one flow). It ends when the last has
// arrived and the chips have done its work in memory, which they do turn by turn. A turn that is
// made in many places is worked out in one of them if all have the same links, the same work and no
// faults to come: the others do the same at the same times. The
// result is a pure function of its arguments, so processes that share the work need not agree on
// times: each computes all of them.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "sim-node/collective/schedule/schedule.h"
#include "sim-node/engine/fault_plan.h"
#include "sim-node/engine/virtual_time.h"
#include "sim-node/link/fabric.h"

namespace tahoma::sim {

struct StepTimes {
  VirtualTime departure;  // the sends leave
  // Of each send, in the step's order; empty for schedules with turns.
  std::vector<VirtualTime> arrivals;
  VirtualTime end;  // the last arrival, or the end of the work in memory

  // Of a send, by its place in the step. In a schedule with turns none is used before the end.
  VirtualTime ArrivalOf(std::size_t send) const { return arrivals.empty() ? end : arrivals[send]; }
};

struct ScheduleTimes {
  VirtualTime start;
  VirtualTime end;
  std::vector<StepTimes> steps;  // of each turn
  std::uint64_t flows = 0;       // that were worked out, of all schedules together
};

// All schedules start at `start` and share the links; faults strike at their times, with link ids
// as targets (targets that name no link are an error). kFailedPrecondition when links that are down
// cut members off.
absl::StatusOr<std::vector<ScheduleTimes>> TimeSchedules(
    const std::vector<const Schedule*>& schedules, Fabric fabric, VirtualTime start = {},
    const FaultPlan& faults = {});
// The same on one torus.
absl::StatusOr<std::vector<ScheduleTimes>> TimeSchedules(
    const std::vector<const Schedule*>& schedules, TorusLinks links, VirtualTime start = {},
    const FaultPlan& faults = {});

}  // namespace tahoma::sim

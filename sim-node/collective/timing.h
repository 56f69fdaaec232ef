// What schedules cost on the links, in virtual time.
//
//   auto times = TimeSchedules({&schedule}, links);
//   (*times)[0].end - (*times)[0].start;
//
// A step begins when all messages of the step before have arrived (of the one `slices` before,
// see schedule.h); it costs LinkTiming::step of software and what StepWork says, then all its sends
// flow at once (sends between the same two chips are one flow). It ends when the last has arrived
// and the chips have done its work in memory, which they do step by step. The
// result is a pure function of its arguments, so processes that share the work need not agree on
// times: each computes all of them.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "sim-node/collective/schedule.h"
#include "sim-node/engine/fault_plan.h"
#include "sim-node/engine/virtual_time.h"
#include "sim-node/link/torus_links.h"

namespace tahoma::sim {

struct StepTimes {
  VirtualTime departure;              // the sends leave
  std::vector<VirtualTime> arrivals;  // of each send, in the step's order
  VirtualTime end;                    // the last arrival, or the end of the work in memory
};

struct ScheduleTimes {
  VirtualTime start;
  VirtualTime end;
  std::vector<StepTimes> steps;
};

// All schedules start at `start` and share the links; faults strike at their times, with link ids
// as targets (targets that name no link are an error). kFailedPrecondition when links that are down
// cut members off.
absl::StatusOr<std::vector<ScheduleTimes>> TimeSchedules(
    const std::vector<const Schedule*>& schedules, TorusLinks links, VirtualTime start = {},
    const FaultPlan& faults = {});

}  // namespace tahoma::sim

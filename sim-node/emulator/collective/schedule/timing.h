// The time that schedules take on the links, in virtual time.
//
//   auto times = TimeSchedules({&schedule}, fabric);
//   (*times)[0].end - (*times)[0].start;
//
// A scheduled step (schedule.h: a ScheduledStep, or a step if there are none) begins when all
// messages of the ones that it depends on have arrived. It costs LinkTiming::step of software and
// the StepWork, then all its sends flow at once (sends between the same two chips are one flow). It
// ends when the last has arrived and the chips have done its work in memory, which they do one step
// after the other. A step that is executed in many places is computed for one of them if all have
// the same links, the same work and no faults to come: the others do the same at the same times.
// The result is a pure function of its arguments, so processes that share the work need not agree
// on times: each computes all of them.
//
// Thread safety: functions are pure; a RunningSchedule belongs to the thread of its EventQueue.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/engine/event_queue.h"
#include "sim-node/emulator/engine/fault_plan.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/fabric.h"
#include "sim-node/emulator/link/transfer.h"

namespace tahoma::sim {

struct StepTimes {
  VirtualTime departure;  // the sends leave
  // The arrival of each send, in the step's order; empty for schedules with scheduled steps.
  std::vector<VirtualTime> arrivals;
  VirtualTime end;  // the last arrival, or the end of the work in memory

  // Returns the arrival of a send, by its place in the step. In a schedule with scheduled steps
  // none is used before the end.
  VirtualTime ArrivalOf(std::size_t send) const { return arrivals.empty() ? end : arrivals[send]; }
};

struct ScheduleTimes {
  VirtualTime start;
  VirtualTime end;
  std::vector<StepTimes> steps;  // of each scheduled step
  std::uint64_t flows = 0;       // that were computed, of all schedules together
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

// A schedule beside others, with which the schedule shares a clock and links.
//
//   RunningSchedule running(schedule, fabric, queue, transfer, memory, [](const absl::Status&) {});
//   queue.RunUntilIdle();
class RunningSchedule {
 public:
  // Does a scheduled step's work in the chips' memories, and calls `done` at the end. Alone in the
  // memories, the step takes `work`.
  using Memory = std::function<void(std::uint32_t scheduled_step, VirtualDuration work,
                                    std::function<void()> done)>;
  // Called once, at the end: with OK, or kFailedPrecondition as of TimeSchedules.
  using Done = std::function<void(const absl::Status& status)>;

  // Starts now. All must outlive the object, and the object its events.
  RunningSchedule(const Schedule& schedule, const Fabric& fabric, EventQueue& queue,
                  Transfer& transfer, Memory memory, Done done);
  ~RunningSchedule();
  RunningSchedule(const RunningSchedule&) = delete;
  RunningSchedule& operator=(const RunningSchedule&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tahoma::sim

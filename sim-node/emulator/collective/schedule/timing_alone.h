// The time of a schedule whose steps each have the links for themselves: TimeSchedules
// (timing.h) without its queue of events, some eight times as fast.
//
//   if (auto times = TimeAlone(schedule, links, start)) return *std::move(times);
//
// Steps in order leave only once the links are free of the one before. So when no two messages of a
// step have a link in common, each has the rate of its slowest link until it ends, and the times of
// a step follow from those of the step before and of the stripe's own last one.
//
// Scope: one schedule alone on one torus, without faults to come; internal to timing.
//
// Thread safety: pure functions.

#pragma once

#include <optional>

#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/collective/schedule/timing.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

// Nothing for schedules with scheduled steps, meshes or explicit routes, and where messages of a
// step share links or have no route.
std::optional<ScheduleTimes> TimeAlone(const Schedule& schedule, const TorusLinks& links,
                                       VirtualTime start);

}  // namespace tahoma::sim

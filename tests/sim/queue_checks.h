// The queues of simulated worlds, and a check that none holds more than its limit.
//
// Thread safety: one thread.

#pragma once

#include <array>
#include <memory>
#include <vector>

#include "controller/core/snapshot.h"
#include "controller/share/queue_spec.h"
#include "tests/sim/world.h"

namespace tahoma::simulation {

// The queues that gangs name.
const std::array<const char*, 3>& QueueNames();
// All queues: those, and the queue above two of them.
std::vector<std::shared_ptr<const controller::QueueSpec>> QueuesOfWorlds();

// Fails the world when a queue holds more than its limit, or more gangs run there than may.
void CheckLimits(World& world, const controller::Snapshot& snapshot);
// Fails the world when a queue counts other gangs than those that run. Holds at rest.
void CheckCounts(World& world, const controller::Snapshot& snapshot);

}  // namespace tahoma::simulation

// The queues of simulated worlds, and a check that none holds more than its limit.
//
// Thread safety: one thread.

#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/core/snapshot.h"
#include "controller/share/queue_calendar.h"
#include "controller/share/queue_spec.h"
#include "tests/sim/world.h"

namespace tahoma::simulation {

// The queues that gangs name.
const std::array<const char*, 3>& QueueNames();
// All queues: those, and the queue above two of them.
std::vector<std::shared_ptr<const controller::QueueSpec>> QueuesOfWorlds();

// Periods of a minute and more, in the first hour of a world.
std::shared_ptr<const controller::QueueCalendarSpec> CalendarOfWorlds();

// Compares after each step the chips of queues with the limits in force. Chips held before a
// calendar lowered a limit may be beyond the limit.
class LimitChecks {
 public:
  // Fails the world when a queue has come to hold more than the limit, or runs too many gangs.
  void AfterStep(World& world, const controller::Snapshot& snapshot);

 private:
  std::map<std::string, controller::ChipCounts> held_;  // after the last step
};

// Fails the world when a queue counts other gangs than those that run. Holds at rest.
void CheckCounts(World& world, const controller::Snapshot& snapshot);

}  // namespace tahoma::simulation

// The queues of simulated worlds; checks of the queues' limits, and of the use of chips, of which
// none counts twice.
//
// Thread safety: one thread.

#pragma once

#include <array>
#include <cstdint>
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

// Adds up the longest use of chips by the controller's decisions, and fails the world when the
// controller counts more. Chips are held on while a controller is dead.
class UseChecks {
 public:
  explicit UseChecks(World& world) : world_(world) {}
  void OnStep(const controller::Snapshot& snapshot);

 private:
  World& world_;
  std::map<std::string, double> most_;        // eighths times seconds, by queue
  std::map<std::string, std::int64_t> held_;  // eighths since the last step, by queue
  WallTime last_{};
};

// Fails the world when a queue counts other gangs than those that run. Holds at rest.
void CheckCounts(World& world, const controller::Snapshot& snapshot);

}  // namespace tahoma::simulation

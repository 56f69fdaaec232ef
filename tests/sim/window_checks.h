// The maintenance windows of simulated worlds, and a check that no gang begins where the gang would
// run during a window.
//
// Thread safety: one thread.

#pragma once

#include <memory>
#include <vector>

#include "controller/core/facts/window_object.h"
#include "controller/core/journal/gang_decision.h"
#include "tests/sim/world.h"

namespace tahoma::simulation {

// All windows. They are over before a world is at rest.
std::vector<std::shared_ptr<const controller::WindowSpec>> WindowsOfWorlds();

// Fails the world when the gang, placed now, would run during a window on hardware of the window.
void CheckWindows(World& world, const controller::GangDecision& decision);

}  // namespace tahoma::simulation

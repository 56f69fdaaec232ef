// Pictures of a replay: the chips in use over time, and how many jobs waited for how long.
//
//   const std::string use = DrawUse(workload, runs);      // a whole SVG file
//   const std::string waits = DrawWaits(workload, runs);
//
// One file each, without scripts or references, a line for each policy with a legend. A line has at
// most as many points as the picture has columns.
//
// Thread safety: pure functions.

#pragma once

#include <string>
#include <vector>

#include "controller/replay/replay.h"

namespace tahoma::controller {

// Chips in use, averaged over each column's time.
std::string DrawUse(const Workload& workload, const std::vector<ReplayRun>& runs);

// The part of the jobs that waited no longer than the time across, which is logarithmic.
std::string DrawWaits(const Workload& workload, const std::vector<ReplayRun>& runs);

}  // namespace tahoma::controller

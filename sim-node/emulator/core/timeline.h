// A run of a core for people: a timeline for Perfetto or Chrome.
//
//   CoreTimeline(run, program, {.chip = 5, .core = 2});
//
// The Trace Event Format's JSON, on the axis and with the processes of sim-node/trace/formats.h: a
// process for each chip, a thread for each resource of the core that was used, microseconds of
// virtual time. The two files' events can stand in one.
//
// Thread safety: pure function.

#pragma once

#include <string>

#include "lib/isa/program.h"
#include "sim-node/emulator/core/engines.h"

namespace tahoma::sim {

struct TimelinePlace {
  int chip = 0;  // its process
  int core = 0;  // of the chip
};

std::string CoreTimeline(const CoreRun& run, const isa::Program& program,
                         const TimelinePlace& place);

}  // namespace tahoma::sim

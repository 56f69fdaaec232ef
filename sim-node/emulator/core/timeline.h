// A run of cores for people: a timeline for Perfetto or Chrome.
//
//   CoreTimeline({{{.run = &run, .chip = 5, .core = 2}}}, program);
//
// The Trace Event Format's JSON, on the axis and with the processes of sim-node/trace/formats.h: a
// process for each chip, a thread for each resource of the core that was used, microseconds of
// virtual time. The two files' events can stand in one.
//
// Thread safety: pure function.

#pragma once

#include <span>
#include <string>

#include "lib/isa/program.h"
#include "sim-node/emulator/core/engines.h"

namespace tahoma::sim {

struct RankTimeline {
  const CoreRun* run = nullptr;
  int chip = 0;  // its process
  int core = 0;  // of the chip
};

std::string CoreTimeline(std::span<const RankTimeline> ranks, const isa::Program& program);

}  // namespace tahoma::sim

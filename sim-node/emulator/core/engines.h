// Runs a program on the engines of one NeuronCore, in virtual time.
//
//   const auto run = RunCore(assembled, hw::kTrainium2Core, {}, [&](const isa::Instruction& one) {
//     return Execute(assembled.program, one, memory, hbm);
//   });
//   run->time;                       // from the first instruction to the last result
//   run->resources[run->busiest];    // {"tensor", 218.5 us, 1024 instructions}
//   run->timeline;                   // who did which instruction, from when to when
//
// An engine takes its instructions in the program's order, each when the engine is free and the
// instruction's waits have ended. A DMA instruction keeps its engine for a moment, then the
// engine's descriptor queue, then the DMA engines of its partitions, which take what comes first
// first. Instructions are carried out in the order in which they start.
//
// No program with these instructions takes less than its busiest resource: `run->bound()`.
//
// One core alone cannot fill its HBM stack (16 engines of 27.2 GB/s against 716 GB/s), so the stack
// is counted and limits nothing.
//
// Thread safety: a function; `carry_out` is called on the caller's thread.

#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/hw/core_profile.h"
#include "lib/isa/assemble.h"
#include "sim-node/emulator/core/cost.h"
#include "sim-node/emulator/engine/virtual_time.h"

namespace tahoma::sim {

// Resources of a core: the five engines in the order of isa::Engine, the descriptor queue of each,
// the DMA engines, the HBM stack.
inline constexpr std::size_t kQueueResource = isa::kEngines;
inline constexpr std::size_t kDmaResource = 2 * isa::kEngines;
inline constexpr std::size_t kHbmResource = kDmaResource + kDmaEngines;
inline constexpr std::size_t kResources = kHbmResource + 1;
// "tensor", "sync queue", "DMA engine 3", "HBM stack".
std::string ResourceName(std::size_t resource);

struct ResourceUse {
  VirtualDuration busy{};
  std::uint64_t instructions = 0;
};

struct Interval {
  std::uint32_t instruction = 0;
  std::uint8_t resource = 0;
  VirtualTime begin{};
  VirtualTime end{};
};

struct CoreRun {
  VirtualDuration time{};
  std::vector<ResourceUse> resources = std::vector<ResourceUse>(kResources);
  std::size_t busiest = 0;
  std::uint64_t hbm_bytes = 0;
  std::vector<Interval> timeline = {};  // in the order in which instructions start
  std::uint64_t left_out = 0;           // intervals beyond CoreRunOptions::most_intervals

  VirtualDuration bound() const { return resources[busiest].busy; }
};

struct CoreRunOptions {
  std::size_t most_intervals = 0;
};

// Carries an instruction out (execute.h). A failure ends the run.
using CarryOut = absl::FunctionRef<absl::Status(const isa::Instruction&)>;

// Fails as `carry_out`.
absl::StatusOr<CoreRun> RunCore(const isa::Assembled& ready, const hw::CoreProfile& profile,
                                const CoreRunOptions& options, CarryOut carry_out);

}  // namespace tahoma::sim

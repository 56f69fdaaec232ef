// Runs a program on the engines of a NeuronCore, or of the two of a logical core, in virtual time.
//
//   const auto carry_out = [&](const isa::Instruction& one, const isa::Instruction* other) {
//     return Execute(assembled.program, one, other, memories, hbm);
//   };
//   const auto run = RunCore(assembled, hw::kTrainium2Core, {}, carry_out);
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
// Two cores meet in some instructions (isa::IsMeeting): the instruction starts on both when both
// have come to the instruction and its waits have ended.
//
// Both cores share an HBM stack of 716 GB/s. The DMA engines of one core, 16 of 27.2 GB/s, fill the
// stack only when they copy from HBM to HBM. A copy ends no sooner than the stack has moved
// the bytes of the copy and of those that started before.
//
// Thread safety: a function; `carry_out` is called on the caller's thread.

#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <array>
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
// the DMA engines. Those of a second core follow, and the HBM stack is the last.
inline constexpr std::size_t kQueueResource = isa::kEngines;
inline constexpr std::size_t kDmaResource = 2 * isa::kEngines;
inline constexpr std::size_t kCoreResources = kDmaResource + kDmaEngines;
inline constexpr std::size_t kResourcesMax = isa::kCoresMax * kCoreResources + 1;
// "tensor", "sync queue", "DMA engine 3", "HBM stack"; of two cores "NC 1 tensor".
std::string ResourceName(std::size_t resource, int cores);

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

// The work of one physical core.
struct CoreWork {
  std::uint64_t hbm_bytes = 0;  // read and written
  std::uint64_t flops = 0;      // of products: a multiply-add is two
};

struct CoreRun {
  VirtualDuration time{};
  int cores = 1;
  std::vector<ResourceUse> resources = {};
  std::size_t busiest = 0;
  std::uint64_t hbm_bytes = 0;
  std::array<CoreWork, isa::kCoresMax> work = {};
  std::vector<Interval> timeline = {};  // in the order in which instructions start
  std::uint64_t left_out = 0;           // intervals beyond CoreRunOptions::most_intervals

  VirtualDuration bound() const { return resources[busiest].busy; }
  std::string NameOf(std::size_t resource) const { return ResourceName(resource, cores); }
};

struct CoreRunOptions {
  std::size_t most_intervals = 0;
};

// Carries an instruction out (execute.h), and with it the other core's when the two meet. A failure
// ends the run.
using CarryOut = absl::FunctionRef<absl::Status(const isa::Instruction& instruction,
                                                const isa::Instruction* other)>;

// Fails as `carry_out`.
absl::StatusOr<CoreRun> RunCore(const isa::Assembled& ready, const hw::CoreProfile& profile,
                                const CoreRunOptions& options, CarryOut carry_out);

}  // namespace tahoma::sim

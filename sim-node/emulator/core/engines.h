// Runs programs on the engines of NeuronCores in virtual time: of one core, of the two of a logical
// core, of many logical cores on one clock.
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
// An HBM stack is shared (sim-node/emulator/chip/hbm_stack.h), by the two cores whose stack it is
// and by all else that moves bytes there. A core's copies are served one after the other. A copy
// ends when its DMA engines have ended and the stacks have moved its bytes.
//
// Thread safety: none; `carry_out` is called on the caller's thread.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/hw/core_profile.h"
#include "lib/isa/assemble.h"
#include "sim-node/emulator/chip/hbm_stack.h"
#include "sim-node/emulator/core/cost.h"
#include "sim-node/emulator/engine/event_queue.h"
#include "sim-node/emulator/engine/virtual_time.h"

namespace tahoma::sim {

// Resources of a core: the five engines in the order of isa::Engine, the descriptor queue of each,
// the DMA engines. Those of a second core follow, then the HBM stacks and the collectives.
inline constexpr std::size_t kQueueResource = isa::kEngines;
inline constexpr std::size_t kDmaResource = 2 * isa::kEngines;
inline constexpr std::size_t kCoreResources = kDmaResource + kDmaEngines;
inline constexpr std::size_t kResourcesMax = isa::kCoresMax * kCoreResources + 2;
// "tensor", "sync queue", "DMA engine 3", "HBM stack"; of two cores "NC 1 tensor".
std::string ResourceName(std::size_t resource, int cores);

inline constexpr std::size_t kHbmStacks = 4;  // of a chip
// Bytes per second.
std::uint64_t StackRateOf(const hw::CoreProfile& profile);

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

// The stacks of the chip, and in which of them a program's tensors are.
struct CoreHbm {
  std::array<HbmStack*, kHbmStacks> stacks{};
  std::size_t own = 0;                   // the stack of the logical core
  std::vector<std::size_t> of_buffer{};  // by BufferId; empty: all are in the own
};

// Carries out an instruction of one of several programs (execute.h), and with it the other core's
// when the two meet. A failure ends the run.
using CarryOut = absl::FunctionRef<absl::Status(
    std::size_t rank, const isa::Instruction& instruction, const isa::Instruction* other)>;

// The engines of a logical core with a program.
class CoreEngines {
 public:
  struct Next {
    std::uint32_t instruction = 0;
    VirtualTime start{};
  };
  // Called when an engine has posted a collective, which EndCollective has to end.
  using Posted = std::function<void(std::uint32_t instruction)>;

  // `ready`, `profile`, `queue` and the stacks must outlive the object, and the object the events.
  CoreEngines(const isa::Assembled& ready, const hw::CoreProfile& profile,
              const CoreRunOptions& options, EventQueue& queue, CoreHbm hbm, Posted posted = {});
  CoreEngines(const CoreEngines&) = delete;
  CoreEngines& operator=(const CoreEngines&) = delete;

  // The earliest start among the engines' next instructions; of equal ones the first in the
  // program. nullopt: nothing starts before the next event, or ever.
  const std::optional<Next>& next();
  // Carries the next instruction out and starts it, at a time when all earlier events have run.
  absl::Status Start(std::size_t rank, CarryOut carry_out);
  // A posted collective that has run since `begin` ends now. It takes `alone` if nothing else runs.
  void EndCollective(std::uint32_t instruction, VirtualTime begin, VirtualDuration alone);

  bool done() const { return left_ == 0; }
  CoreRun Finish();

 private:
  static std::size_t StreamOf(const isa::Instruction& instruction) {
    return static_cast<std::size_t>(instruction.core * isa::kEngines) +
           static_cast<std::size_t>(instruction.engine);
  }
  const isa::Instruction& Of(std::uint32_t instruction) const {
    return ready_.program.instructions[instruction];
  }
  // The first resource of an instruction's core.
  std::size_t FirstOf(std::uint32_t instruction) const {
    return static_cast<std::size_t>(Of(instruction).core) * kCoreResources;
  }
  std::size_t HbmResource() const { return static_cast<std::size_t>(run_.cores) * kCoreResources; }
  CoreWork& WorkOf(std::uint32_t instruction) {
    return run_.work.at(static_cast<std::size_t>(Of(instruction).core));
  }

  void FindMeetings();
  std::optional<Next> FindNext();
  std::optional<VirtualTime> StartOf(std::uint32_t instruction) const;
  std::optional<VirtualTime> OwnStartOf(std::uint32_t instruction) const;
  void StartOne(const Next& next);
  void StartOn(const Next& next);
  // Keeps the triggering engine for a moment; returns when it is free again.
  VirtualTime Trigger(const Next& next);
  void StartDma(const Next& next);
  // How much slower a copy is that reaches other stacks than the core's own.
  double DistanceOf(const DmaWork& work) const;
  // Moves the bytes from `begin` on; the copy has ended on its engines at `end`.
  void MoveHbm(std::uint32_t instruction, const DmaWork& work, VirtualTime begin, VirtualTime end);
  void OnMoved(std::uint32_t instruction);
  void End(std::uint32_t instruction, VirtualTime end);
  std::size_t StackOf(isa::BufferId buffer) const;
  VirtualDuration HbmTime(std::uint64_t bytes) const;
  // Returns the end.
  VirtualTime Use(std::size_t resource, std::uint32_t instruction, VirtualTime begin,
                  VirtualDuration busy);
  void Show(std::size_t resource, std::uint32_t instruction, VirtualTime begin, VirtualTime end);

  // A copy whose bytes some stacks have to move.
  struct Moving {
    VirtualTime engines_end{};
    int stacks = 0;
  };

  const isa::Assembled& ready_;
  const hw::CoreProfile& profile_;
  const CoreRunOptions options_;
  EventQueue& queue_;
  const CoreHbm hbm_;
  const Posted posted_;
  std::array<std::vector<std::uint32_t>, isa::kCoresMax * isa::kEngines> streams_;
  std::array<std::size_t, isa::kCoresMax * isa::kEngines> taken_{};
  // When the next instruction of each stream starts. A known start never changes.
  std::array<std::optional<VirtualTime>, isa::kCoresMax * isa::kEngines> starts_{};
  std::array<VirtualDuration, isa::kEngines> signals_{};  // from a result to an engine that waits
  std::array<VirtualTime, kResourcesMax> free_{};
  // By physical core and stack.
  std::array<std::array<HbmStack::Port, kHbmStacks>, isa::kCoresMax> ports_{};
  std::array<std::uint64_t, kHbmStacks> stack_bytes_{};
  std::vector<std::optional<VirtualTime>> ended_;                 // by instruction
  absl::flat_hash_map<std::uint32_t, std::uint32_t> meets_ = {};  // by instruction, both ways
  absl::flat_hash_map<std::uint32_t, Moving> moving_ = {};        // by instruction
  std::optional<Next> next_;
  bool found_ = false;    // next_ is as FindNext says
  std::size_t left_ = 0;  // instructions that have not ended
  CoreRun run_;
};

// Runs all engines to their end. Events come before instructions of the same instant. Fails as
// `carry_out`, whose rank is the place in `all`.
absl::Status RunEngines(std::span<const std::unique_ptr<CoreEngines>> all, EventQueue& queue,
                        CarryOut carry_out);

// Runs a program without collectives on a chip where nothing else runs. Fails as `carry_out`.
absl::StatusOr<CoreRun> RunCore(const isa::Assembled& ready, const hw::CoreProfile& profile,
                                const CoreRunOptions& options,
                                absl::FunctionRef<absl::Status(const isa::Instruction& instruction,
                                                               const isa::Instruction* other)>
                                    carry_out);

}  // namespace tahoma::sim

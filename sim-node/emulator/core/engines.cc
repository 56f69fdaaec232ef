#include "sim-node/emulator/core/engines.h"

#include <algorithm>
#include <array>
#include <optional>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/isa/instruction.h"

namespace tahoma::sim {
namespace {

using isa::Engine;

class Engines {
 public:
  Engines(const isa::Assembled& ready, const hw::CoreProfile& profile,
          const CoreRunOptions& options)
      : ready_(ready), profile_(profile), options_(options) {
    const auto& instructions = ready.program.instructions;
    ended_.resize(instructions.size());
    for (std::uint32_t index = 0; index < instructions.size(); ++index) {
      streams_.at(static_cast<std::size_t>(instructions[index].engine)).push_back(index);
    }
  }

  absl::StatusOr<CoreRun> Run(CarryOut carry_out) {
    for (std::size_t left = ended_.size(); left > 0; --left) {
      const Next next = FindNext();
      const isa::Instruction& instruction = ready_.program.instructions[next.instruction];
      TAHOMA_RETURN_IF_ERROR(carry_out(instruction));
      ++taken_.at(static_cast<std::size_t>(instruction.engine));
      const bool dma = isa::RowOf(instruction.opcode).cost == isa::CostForm::kDma;
      ended_[next.instruction] = dma ? StartDma(next) : StartOn(next);
      run_.time = std::max(run_.time, ended_[next.instruction]->time_since_epoch());
    }
    Finish();
    return std::move(run_);
  }

 private:
  struct Next {
    std::uint32_t instruction = 0;
    VirtualTime start{};
  };

  const isa::Instruction& Of(const Next& next) const {
    return ready_.program.instructions[next.instruction];
  }

  // The earliest start among the engines' next instructions; of equal ones the first in the
  // program. An instruction whose waits have not started yet starts later than all of these.
  Next FindNext() const {
    std::optional<Next> best;
    for (std::size_t engine = 0; engine < streams_.size(); ++engine) {
      if (taken_.at(engine) == streams_.at(engine).size()) continue;
      const std::uint32_t head = streams_.at(engine)[taken_.at(engine)];
      const auto start = StartOf(head, engine);
      if (!start) continue;
      const Next next{.instruction = head, .start = *start};
      if (!best ||
          std::pair(next.start, next.instruction) < std::pair(best->start, best->instruction)) {
        best = next;
      }
    }
    TAHOMA_CHECK(best.has_value());  // waits point to earlier instructions
    return *best;
  }

  // Nothing before all waits have started.
  std::optional<VirtualTime> StartOf(std::uint32_t instruction, std::size_t engine) const {
    const VirtualDuration signal =
        Cycles(profile_.semaphore.value, static_cast<Engine>(engine), profile_);
    VirtualTime start = free_.at(engine);
    for (const std::uint32_t earlier : ready_.waits[instruction]) {
      if (!ended_[earlier]) return std::nullopt;
      start = std::max(start, *ended_[earlier] + signal);
    }
    return start;
  }

  VirtualTime StartOn(const Next& next) {
    const auto engine = static_cast<std::size_t>(Of(next).engine);
    const Cost cost = CostOf(ready_.program, Of(next), profile_);
    free_.at(engine) = Use(engine, next.instruction, next.start, cost.busy);
    return next.start + cost.ready;
  }

  VirtualTime StartDma(const Next& next) {
    const Engine triggering = Of(next).engine;
    const auto engine = static_cast<std::size_t>(triggering);
    free_.at(engine) = Use(engine, next.instruction, next.start,
                           Cycles(profile_.least_interval.value, triggering, profile_));
    const VirtualTime queued = std::max(next.start, free_.at(kQueueResource + engine));
    free_.at(kQueueResource + engine) =
        Use(kQueueResource + engine, next.instruction, queued, FromNanoseconds(profile_.dma_issue));
    const DmaWork work = DmaWorkOf(ready_.program, Of(next), profile_);
    const VirtualTime first = queued + FromNanoseconds(profile_.dma_start);
    VirtualTime end = first;
    for (std::size_t i = 0; i < work.engines.size(); ++i) {
      if (work.engines.at(i) == VirtualDuration{}) continue;
      VirtualTime& free = free_.at(kDmaResource + i);
      free = Use(kDmaResource + i, next.instruction, std::max(first, free), work.engines.at(i));
      end = std::max(end, free);
    }
    run_.hbm_bytes += work.hbm_bytes;
    if (work.hbm_bytes > 0) ++run_.resources[kHbmResource].instructions;
    return end;
  }

  // Returns the end.
  VirtualTime Use(std::size_t resource, std::uint32_t instruction, VirtualTime begin,
                  VirtualDuration busy) {
    ResourceUse& use = run_.resources[resource];
    use.busy += busy;
    ++use.instructions;
    if (run_.timeline.size() < options_.most_intervals) {
      run_.timeline.push_back({.instruction = instruction,
                               .resource = static_cast<std::uint8_t>(resource),
                               .begin = begin,
                               .end = begin + busy});
    } else {
      ++run_.left_out;
    }
    return begin + busy;
  }

  void Finish() {
    run_.resources[kHbmResource].busy =
        Microseconds(static_cast<double>(run_.hbm_bytes) / profile_.hbm_stack_rate.value / 1e3);
    for (std::size_t i = 0; i < kResources; ++i) {
      if (run_.resources[i].busy > run_.bound()) run_.busiest = i;
    }
  }

  const isa::Assembled& ready_;
  const hw::CoreProfile& profile_;
  const CoreRunOptions& options_;
  std::array<std::vector<std::uint32_t>, isa::kEngines> streams_;
  std::array<std::size_t, isa::kEngines> taken_{};
  std::array<VirtualTime, kHbmResource> free_{};
  std::vector<std::optional<VirtualTime>> ended_;  // by instruction
  CoreRun run_;
};

}  // namespace

std::string ResourceName(std::size_t resource) {
  if (resource < kQueueResource) return std::string(isa::Name(static_cast<Engine>(resource)));
  if (resource < kDmaResource) {
    return fmt::format("{} queue", isa::Name(static_cast<Engine>(resource - kQueueResource)));
  }
  if (resource < kHbmResource) return fmt::format("DMA engine {}", resource - kDmaResource);
  return "HBM stack";
}

absl::StatusOr<CoreRun> RunCore(const isa::Assembled& ready, const hw::CoreProfile& profile,
                                const CoreRunOptions& options, CarryOut carry_out) {
  return Engines(ready, profile, options).Run(carry_out);
}

}  // namespace tahoma::sim

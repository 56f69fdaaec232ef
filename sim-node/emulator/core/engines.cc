#include "sim-node/emulator/core/engines.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <array>
#include <optional>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/isa/instruction.h"

namespace tahoma::sim {
namespace {

using isa::Engine;

// A multiply-add for each element of the product and each row that the element sums.
std::uint64_t FlopsOf(const isa::Instruction& matmul) {
  const isa::View& to = matmul.operands[0];
  return static_cast<std::uint64_t>(2 * to.rows.count * to.FreeCount() *
                                    matmul.operands[1].rows.count);
}

class Engines {
 public:
  Engines(const isa::Assembled& ready, const hw::CoreProfile& profile,
          const CoreRunOptions& options)
      : ready_(ready), profile_(profile), options_(options) {
    const auto& instructions = ready.program.instructions;
    run_.cores = ready.program.Cores();
    run_.resources.resize(HbmResource() + 1);
    ended_.resize(instructions.size());
    for (std::uint32_t index = 0; index < instructions.size(); ++index) {
      streams_.at(StreamOf(instructions[index])).push_back(index);
    }
    FindMeetings();
  }

  absl::StatusOr<CoreRun> Run(CarryOut carry_out) {
    const auto& instructions = ready_.program.instructions;
    for (std::size_t left = ended_.size(); left > 0; --left) {
      const Next next = FindNext();
      const auto other = meets_.find(next.instruction);
      const bool meeting = other != meets_.end();
      TAHOMA_RETURN_IF_ERROR(carry_out(instructions[next.instruction],
                                       meeting ? &instructions[other->second] : nullptr));
      Start(next);
      if (!meeting) continue;
      Start({.instruction = other->second, .start = next.start});
      --left;
    }
    Finish();
    return std::move(run_);
  }

 private:
  struct Next {
    std::uint32_t instruction = 0;
    VirtualTime start{};
  };

  static std::size_t StreamOf(const isa::Instruction& instruction) {
    return static_cast<std::size_t>(instruction.core * isa::kEngines) +
           static_cast<std::size_t>(instruction.engine);
  }
  // The first resource of an instruction's core.
  std::size_t FirstOf(const Next& next) const {
    return static_cast<std::size_t>(Of(next).core) * kCoreResources;
  }
  std::size_t HbmResource() const { return static_cast<std::size_t>(run_.cores) * kCoreResources; }

  const isa::Instruction& Of(const Next& next) const {
    return ready_.program.instructions[next.instruction];
  }

  CoreWork& WorkOf(const Next& next) {
    return run_.work.at(static_cast<std::size_t>(Of(next).core));
  }

  // The n-th meeting of core 0 is the n-th of core 1, as CheckProgram has seen to.
  void FindMeetings() {
    std::array<std::vector<std::uint32_t>, isa::kCoresMax> meetings;
    for (std::uint32_t at = 0; at < ready_.program.instructions.size(); ++at) {
      const isa::Instruction& instruction = ready_.program.instructions[at];
      if (!isa::IsMeeting(instruction.opcode)) continue;
      meetings.at(static_cast<std::size_t>(instruction.core)).push_back(at);
    }
    TAHOMA_CHECK(meetings[0].size() == meetings[1].size());
    for (std::size_t at = 0; at < meetings[0].size(); ++at) {
      meets_[meetings[0][at]] = meetings[1][at];
      meets_[meetings[1][at]] = meetings[0][at];
    }
  }

  // The earliest start among the engines' next instructions; of equal ones the first in the
  // program. An instruction whose waits have not started yet starts later than all of these.
  Next FindNext() const {
    std::optional<Next> best;
    for (std::size_t stream = 0; stream < streams_.size(); ++stream) {
      if (taken_.at(stream) == streams_.at(stream).size()) continue;
      const std::uint32_t head = streams_.at(stream)[taken_.at(stream)];
      const auto start = StartOf(head);
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

  // Nothing before all waits have started, and before the other core comes to the meeting.
  std::optional<VirtualTime> StartOf(std::uint32_t instruction) const {
    const auto start = OwnStartOf(instruction);
    const auto meets = meets_.find(instruction);
    if (!start || meets == meets_.end()) return start;
    const std::size_t stream = StreamOf(ready_.program.instructions[meets->second]);
    if (streams_.at(stream)[taken_.at(stream)] != meets->second) return std::nullopt;
    const auto others = OwnStartOf(meets->second);
    if (!others) return std::nullopt;
    return std::max(*start, *others);
  }

  std::optional<VirtualTime> OwnStartOf(std::uint32_t instruction) const {
    const isa::Instruction& its = ready_.program.instructions[instruction];
    const VirtualDuration signal = Cycles(profile_.semaphore.value, its.engine, profile_);
    VirtualTime start =
        free_.at(FirstOf({.instruction = instruction}) + static_cast<std::size_t>(its.engine));
    for (const std::uint32_t earlier : ready_.waits[instruction]) {
      if (!ended_[earlier]) return std::nullopt;
      start = std::max(start, *ended_[earlier] + signal);
    }
    return start;
  }

  void Start(const Next& next) {
    const isa::Instruction& instruction = Of(next);
    ++taken_.at(StreamOf(instruction));
    ended_[next.instruction] = isa::IsDma(instruction.opcode) ? StartDma(next) : StartOn(next);
    run_.time = std::max(run_.time, ended_[next.instruction]->time_since_epoch());
  }

  VirtualTime StartOn(const Next& next) {
    const std::size_t engine = FirstOf(next) + static_cast<std::size_t>(Of(next).engine);
    const Cost cost = CostOf(ready_.program, Of(next), profile_);
    if (Of(next).opcode == isa::Opcode::kMatmul) WorkOf(next).flops += FlopsOf(Of(next));
    free_.at(engine) = Use(engine, next.instruction, next.start, cost.busy);
    return next.start + cost.ready;
  }

  VirtualTime StartDma(const Next& next) {
    const Engine triggering = Of(next).engine;
    const std::size_t engine = FirstOf(next) + static_cast<std::size_t>(triggering);
    free_.at(engine) = Use(engine, next.instruction, next.start,
                           Cycles(profile_.least_interval.value, triggering, profile_));
    const std::size_t queue = kQueueResource + engine;
    const VirtualTime queued = std::max(next.start, free_.at(queue));
    free_.at(queue) = Use(queue, next.instruction, queued, FromNanoseconds(profile_.dma_issue));
    const DmaWork work = DmaWorkOf(ready_.program, Of(next), profile_);
    const VirtualTime first = queued + FromNanoseconds(profile_.dma_start);
    VirtualTime end = first;
    for (std::size_t i = 0; i < work.engines.size(); ++i) {
      if (work.engines.at(i) == VirtualDuration{}) continue;
      const std::size_t resource = FirstOf(next) + kDmaResource + i;
      VirtualTime& free = free_.at(resource);
      free = Use(resource, next.instruction, std::max(first, free), work.engines.at(i));
      end = std::max(end, free);
    }
    WorkOf(next).hbm_bytes += work.hbm_bytes;
    return work.hbm_bytes == 0 ? end : std::max(end, UseHbm(first, work.hbm_bytes));
  }

  // Returns when the stack has moved the bytes, one copy after the other.
  VirtualTime UseHbm(VirtualTime begin, std::uint64_t bytes) {
    VirtualTime& free = free_.at(HbmResource());
    free = std::max(begin, free) + HbmTime(bytes);
    run_.hbm_bytes += bytes;
    ++run_.resources[HbmResource()].instructions;
    return free;
  }

  VirtualDuration HbmTime(std::uint64_t bytes) const {
    return Microseconds(static_cast<double>(bytes) / profile_.hbm_stack_rate.value / 1e3);
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
    run_.resources[HbmResource()].busy = HbmTime(run_.hbm_bytes);
    for (std::size_t i = 0; i < run_.resources.size(); ++i) {
      if (run_.resources[i].busy > run_.bound()) run_.busiest = i;
    }
  }

  const isa::Assembled& ready_;
  const hw::CoreProfile& profile_;
  const CoreRunOptions& options_;
  std::array<std::vector<std::uint32_t>, isa::kCoresMax * isa::kEngines> streams_;
  std::array<std::size_t, isa::kCoresMax * isa::kEngines> taken_{};
  std::array<VirtualTime, kResourcesMax> free_{};
  std::vector<std::optional<VirtualTime>> ended_;                 // by instruction
  absl::flat_hash_map<std::uint32_t, std::uint32_t> meets_ = {};  // by instruction, both ways
  CoreRun run_;
};

}  // namespace

std::string ResourceName(std::size_t resource, int cores) {
  const std::size_t core = resource / kCoreResources;
  if (core == static_cast<std::size_t>(cores)) return "HBM stack";
  if (cores > 1) {
    return fmt::format("NC {} {}", core, ResourceName(resource % kCoreResources, 1));
  }
  if (resource < kQueueResource) return std::string(isa::Name(static_cast<Engine>(resource)));
  if (resource < kDmaResource) {
    return fmt::format("{} queue", isa::Name(static_cast<Engine>(resource - kQueueResource)));
  }
  return fmt::format("DMA engine {}", resource - kDmaResource);
}

absl::StatusOr<CoreRun> RunCore(const isa::Assembled& ready, const hw::CoreProfile& profile,
                                const CoreRunOptions& options, CarryOut carry_out) {
  return Engines(ready, profile, options).Run(carry_out);
}

}  // namespace tahoma::sim

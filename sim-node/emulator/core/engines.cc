#include "sim-node/emulator/core/engines.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/isa/instruction.h"

namespace tahoma::sim {
namespace {

using isa::Engine;

// A multiply-add for each element of the product and each row that the element sums.
std::uint64_t FlopsOf(const isa::Instruction& matmul) {
  const isa::View& to = matmul.operands[0];
  const std::int64_t rows = matmul.operands[1].rows.count * (matmul.double_row ? 2 : 1);
  return static_cast<std::uint64_t>(2 * to.Count() * rows);
}

}  // namespace

std::uint64_t StackRateOf(const hw::CoreProfile& profile) {
  return static_cast<std::uint64_t>(profile.hbm_stack_rate.value * 1e9);
}

CoreEngines::CoreEngines(const isa::Assembled& ready, const hw::CoreProfile& profile,
                         const CoreRunOptions& options, EventQueue& queue, CoreHbm hbm,
                         Posted posted)
    : ready_(ready),
      profile_(profile),
      options_(options),
      queue_(queue),
      hbm_(std::move(hbm)),
      posted_(std::move(posted)) {
  const auto& instructions = ready.program.instructions;
  run_.cores = ready.program.Cores();
  run_.resources.resize(HbmResource() + 2);
  ended_.resize(instructions.size());
  left_ = instructions.size();
  for (std::uint32_t index = 0; index < instructions.size(); ++index) {
    streams_.at(StreamOf(instructions[index])).push_back(index);
  }
  for (int core = 0; core < run_.cores; ++core) {
    for (std::size_t stack = 0; stack < kHbmStacks; ++stack) {
      ports_.at(static_cast<std::size_t>(core)).at(stack) = hbm_.stacks.at(stack)->AddPort();
    }
  }
  for (std::size_t engine = 0; engine < signals_.size(); ++engine) {
    signals_.at(engine) = Cycles(profile.semaphore.value, static_cast<Engine>(engine), profile);
  }
  FindMeetings();
}

// The n-th meeting of core 0 is the n-th of core 1, as CheckProgram has seen to.
void CoreEngines::FindMeetings() {
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

const std::optional<CoreEngines::Next>& CoreEngines::next() {
  if (!std::exchange(found_, true)) next_ = FindNext();
  return next_;
}

// An instruction whose waits have not started yet starts later than all of these.
std::optional<CoreEngines::Next> CoreEngines::FindNext() {
  std::optional<Next> best;
  for (std::size_t stream = 0; stream < streams_.size(); ++stream) {
    if (taken_.at(stream) == streams_.at(stream).size()) continue;
    const std::uint32_t head = streams_.at(stream)[taken_.at(stream)];
    std::optional<VirtualTime>& start = starts_.at(stream);
    if (!start) start = StartOf(head);
    if (!start) continue;
    const Next next{.instruction = head, .start = *start};
    if (!best ||
        std::pair(next.start, next.instruction) < std::pair(best->start, best->instruction)) {
      best = next;
    }
  }
  return best;
}

// Nothing before the ends of all waits are known, and before the other core comes to the meeting.
std::optional<VirtualTime> CoreEngines::StartOf(std::uint32_t instruction) const {
  const auto start = OwnStartOf(instruction);
  if (!start || meets_.empty()) return start;
  const auto meets = meets_.find(instruction);
  if (meets == meets_.end()) return start;
  const std::size_t stream = StreamOf(Of(meets->second));
  if (streams_.at(stream)[taken_.at(stream)] != meets->second) return std::nullopt;
  const auto others = OwnStartOf(meets->second);
  if (!others) return std::nullopt;
  return std::max(*start, *others);
}

std::optional<VirtualTime> CoreEngines::OwnStartOf(std::uint32_t instruction) const {
  const isa::Instruction& its = Of(instruction);
  const VirtualDuration signal = signals_.at(static_cast<std::size_t>(its.engine));
  VirtualTime start = free_.at(FirstOf(instruction) + static_cast<std::size_t>(its.engine));
  for (const std::uint32_t earlier : ready_.waits[instruction]) {
    if (!ended_[earlier]) return std::nullopt;
    start = std::max(start, *ended_[earlier] + signal);
  }
  return start;
}

absl::Status CoreEngines::Start(std::size_t rank, CarryOut carry_out) {
  const Next started = *next();
  const auto other = meets_.find(started.instruction);
  const bool meeting = other != meets_.end();
  if (!isa::IsCollective(Of(started.instruction).opcode)) {
    TAHOMA_RETURN_IF_ERROR(
        carry_out(rank, Of(started.instruction), meeting ? &Of(other->second) : nullptr));
  }
  StartOne(started);
  if (meeting) StartOne({.instruction = other->second, .start = started.start});
  return absl::OkStatus();
}

void CoreEngines::StartOne(const Next& next) {
  found_ = false;
  const isa::Opcode opcode = Of(next.instruction).opcode;
  const std::size_t stream = StreamOf(Of(next.instruction));
  ++taken_.at(stream);
  starts_.at(stream).reset();
  if (isa::IsCollective(opcode)) {
    // The queue's clock comes to the start, though no event may be there.
    queue_.Schedule(Trigger(next), EventPriority::kStart,
                    [this, at = next.instruction] { posted_(at); });
  } else if (isa::IsDma(opcode)) {
    StartDma(next);
  } else {
    StartOn(next);
  }
}

void CoreEngines::StartOn(const Next& next) {
  const isa::Instruction& its = Of(next.instruction);
  const std::size_t engine = FirstOf(next.instruction) + static_cast<std::size_t>(its.engine);
  const Cost cost = CostOf(ready_.program, its, profile_);
  if (its.opcode == isa::Opcode::kMatmul) WorkOf(next.instruction).flops += FlopsOf(its);
  free_.at(engine) = Use(engine, next.instruction, next.start, cost.busy);
  End(next.instruction, next.start + cost.ready);
}

VirtualTime CoreEngines::Trigger(const Next& next) {
  const Engine triggering = Of(next.instruction).engine;
  const std::size_t engine = FirstOf(next.instruction) + static_cast<std::size_t>(triggering);
  free_.at(engine) = Use(engine, next.instruction, next.start,
                         Cycles(profile_.least_interval.value, triggering, profile_));
  return free_.at(engine);
}

void CoreEngines::StartDma(const Next& next) {
  Trigger(next);
  const std::size_t queue = kQueueResource + FirstOf(next.instruction) +
                            static_cast<std::size_t>(Of(next.instruction).engine);
  const VirtualTime queued = std::max(next.start, free_.at(queue));
  free_.at(queue) = Use(queue, next.instruction, queued, FromNanoseconds(profile_.dma_issue));
  const DmaWork work = DmaWorkOf(ready_.program, Of(next.instruction), profile_);
  const double distance = DistanceOf(work);
  const VirtualTime first = queued + FromNanoseconds(profile_.dma_start);
  VirtualTime end = first;
  for (std::size_t i = 0; i < work.engines.size(); ++i) {
    VirtualDuration busy = work.engines.at(i);
    if (busy == VirtualDuration{}) continue;
    if (distance != 1) busy = Microseconds(Nanoseconds(busy) / distance / 1e3);
    const std::size_t resource = FirstOf(next.instruction) + kDmaResource + i;
    VirtualTime& free = free_.at(resource);
    free = Use(resource, next.instruction, std::max(first, free), busy);
    end = std::max(end, free);
  }
  MoveHbm(next.instruction, work, first, end);
}

double CoreEngines::DistanceOf(const DmaWork& work) const {
  constexpr std::size_t kStacksOfDie = kHbmStacks / 2;
  double distance = 1;
  for (const DmaWork::Moved& moved : work.hbm) {
    const std::size_t stack = StackOf(moved.buffer);
    if (stack == hbm_.own) continue;
    const bool same_die = stack / kStacksOfDie == hbm_.own / kStacksOfDie;
    distance =
        std::min(distance, same_die ? profile_.hbm_same_die.value : profile_.hbm_other_die.value);
  }
  return distance;
}

void CoreEngines::MoveHbm(std::uint32_t instruction, const DmaWork& work, VirtualTime begin,
                          VirtualTime end) {
  std::array<std::uint64_t, kHbmStacks> bytes{};
  Moving moving = {.engines_end = end};
  for (const DmaWork::Moved& moved : work.hbm) {
    std::uint64_t& of_stack = bytes.at(StackOf(moved.buffer));
    if (of_stack == 0) ++moving.stacks;
    of_stack += moved.bytes;
    WorkOf(instruction).hbm_bytes += moved.bytes;
    run_.hbm_bytes += moved.bytes;
  }
  if (moving.stacks == 0) return End(instruction, end);
  moving_[instruction] = moving;
  ++run_.resources[HbmResource()].instructions;
  for (std::size_t stack = 0; stack < kHbmStacks; ++stack) {
    if (bytes.at(stack) == 0) continue;
    stack_bytes_.at(stack) += bytes.at(stack);
    const HbmStack::Port port = ports_.at(static_cast<std::size_t>(Of(instruction).core)).at(stack);
    queue_.Schedule(
        begin, EventPriority::kStart, [this, instruction, stack, port, moved = bytes.at(stack)] {
          hbm_.stacks.at(stack)->Move(port, moved, [this, instruction] { OnMoved(instruction); });
        });
  }
}

void CoreEngines::OnMoved(std::uint32_t instruction) {
  const auto moving = moving_.find(instruction);
  if (--moving->second.stacks > 0) return;
  const VirtualTime end = std::max(moving->second.engines_end, queue_.now());
  moving_.erase(moving);
  End(instruction, end);
}

void CoreEngines::EndCollective(std::uint32_t instruction, VirtualTime begin,
                                VirtualDuration alone) {
  ResourceUse& use = run_.resources[HbmResource() + 1];
  use.busy += alone;
  ++use.instructions;
  Show(HbmResource() + 1, instruction, begin, queue_.now());
  End(instruction, queue_.now());
}

void CoreEngines::End(std::uint32_t instruction, VirtualTime end) {
  ended_[instruction] = end;
  found_ = false;
  --left_;
  run_.time = std::max(run_.time, end.time_since_epoch());
}

std::size_t CoreEngines::StackOf(isa::BufferId buffer) const {
  return hbm_.of_buffer.empty() ? hbm_.own : hbm_.of_buffer[static_cast<std::size_t>(buffer)];
}

VirtualDuration CoreEngines::HbmTime(std::uint64_t bytes) const {
  return TransferTime(bytes, StackRateOf(profile_));
}

VirtualTime CoreEngines::Use(std::size_t resource, std::uint32_t instruction, VirtualTime begin,
                             VirtualDuration busy) {
  ResourceUse& use = run_.resources[resource];
  use.busy += busy;
  ++use.instructions;
  Show(resource, instruction, begin, begin + busy);
  return begin + busy;
}

void CoreEngines::Show(std::size_t resource, std::uint32_t instruction, VirtualTime begin,
                       VirtualTime end) {
  if (run_.timeline.size() >= options_.most_intervals) {
    ++run_.left_out;
    return;
  }
  run_.timeline.push_back({.instruction = instruction,
                           .resource = static_cast<std::uint8_t>(resource),
                           .begin = begin,
                           .end = end});
}

CoreRun CoreEngines::Finish() {
  run_.resources[HbmResource()].busy = HbmTime(std::ranges::max(stack_bytes_));
  for (std::size_t i = 0; i < run_.resources.size(); ++i) {
    if (run_.resources[i].busy > run_.bound()) run_.busiest = i;
  }
  return std::move(run_);
}

absl::Status RunEngines(std::span<const std::unique_ptr<CoreEngines>> all, EventQueue& queue,
                        CarryOut carry_out) {
  while (true) {
    std::size_t first = all.size();
    VirtualTime start = VirtualTime::max();
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const auto& next = all[rank]->next();
      if (!next || next->start >= start) continue;
      first = rank;
      start = next->start;
    }
    const std::optional<VirtualTime> event = queue.next();
    if (event && *event <= start) {
      queue.RunNext();
    } else if (first < all.size()) {
      TAHOMA_RETURN_IF_ERROR(all[first]->Start(first, carry_out));
    } else {
      return absl::OkStatus();
    }
  }
}

absl::StatusOr<CoreRun> RunCore(const isa::Assembled& ready, const hw::CoreProfile& profile,
                                const CoreRunOptions& options,
                                absl::FunctionRef<absl::Status(const isa::Instruction& instruction,
                                                               const isa::Instruction* other)>
                                    carry_out) {
  EventQueue queue;
  std::vector<std::unique_ptr<HbmStack>> stacks;
  CoreHbm hbm;
  for (HbmStack*& stack : hbm.stacks) {
    stacks.push_back(std::make_unique<HbmStack>(queue, StackRateOf(profile)));
    stack = stacks.back().get();
  }
  std::vector<std::unique_ptr<CoreEngines>> engines;
  engines.push_back(std::make_unique<CoreEngines>(ready, profile, options, queue, std::move(hbm)));
  TAHOMA_RETURN_IF_ERROR(
      RunEngines(engines, queue, [&](std::size_t, const auto& instruction, const auto* other) {
        return carry_out(instruction, other);
      }));
  TAHOMA_CHECK(engines[0]->done());  // waits point to earlier instructions
  return engines[0]->Finish();
}

std::string ResourceName(std::size_t resource, int cores) {
  const std::size_t core = resource / kCoreResources;
  if (core == static_cast<std::size_t>(cores)) {
    return resource % kCoreResources == 0 ? "HBM stack" : "collectives";
  }
  if (cores > 1) {
    return fmt::format("NC {} {}", core, ResourceName(resource % kCoreResources, 1));
  }
  if (resource < kQueueResource) return std::string(isa::Name(static_cast<Engine>(resource)));
  if (resource < kDmaResource) {
    return fmt::format("{} queue", isa::Name(static_cast<Engine>(resource - kQueueResource)));
  }
  return fmt::format("DMA engine {}", resource - kDmaResource);
}

}  // namespace tahoma::sim

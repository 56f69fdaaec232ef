#include "sim-node/emulator/machine/machine.h"

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/isa/instruction.h"
#include "lib/isa/ranks.h"
#include "sim-node/emulator/chip/hbm_stack.h"
#include "sim-node/emulator/collective/plan/plan.h"
#include "sim-node/emulator/collective/schedule/timing.h"
#include "sim-node/emulator/link/transfer.h"

namespace tahoma::sim {
namespace {

Operation OperationOf(isa::Opcode opcode) {
  switch (opcode) {
    case isa::Opcode::kAllReduce:
      return Operation::kAllReduce;
    case isa::Opcode::kAllGather:
      return Operation::kAllGather;
    case isa::Opcode::kReduceScatter:
      return Operation::kReduceScatter;
    default:
      TAHOMA_CHECK(opcode == isa::Opcode::kAllToAll);
      return Operation::kAllToAll;
  }
}

class Machine {
 public:
  Machine(const isa::Assembled& ready, std::span<const MachineRank> ranks, const Fabric& links,
          const hw::CoreProfile& profile, const CoreRunOptions& options,
          const MachineEffects& effects)
      : ready_(ready),
        ranks_(ranks),
        stack_rate_(StackRateOf(profile)),
        effects_(effects),
        fabric_(links),
        transfer_(queue_, fabric_),
        busy_(ranks.size()) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      CoreHbm hbm = {.stacks = StacksOf(ranks[rank].chip),
                     .own = ranks[rank].stack,
                     .of_buffer = ranks[rank].of_buffer};
      engines_.push_back(std::make_unique<CoreEngines>(
          ready, profile, options, queue_, std::move(hbm),
          [this, rank](std::uint32_t instruction) { Post(static_cast<int>(rank), instruction); }));
    }
  }

  absl::StatusOr<MachineRun> Run() {
    const auto carry_out = [this](std::size_t rank, const auto& instruction,
                                  const auto* other) -> absl::Status {
      if (!status_.ok()) return status_;
      return effects_.carry_out(rank, instruction, other);
    };
    TAHOMA_RETURN_IF_ERROR(RunEngines(engines_, queue_, carry_out));
    TAHOMA_RETURN_IF_ERROR(status_);
    MachineRun run;
    for (const auto& engines : engines_) {
      // Waits point to earlier instructions, and all ranks post the same collectives.
      TAHOMA_CHECK(engines->done());
      run.ranks.push_back(engines->Finish());
      run.time = std::max(run.time, run.ranks.back().time);
    }
    return run;
  }

 private:
  // A collective, posted by all ranks of its group.
  struct Collective {
    std::uint32_t instruction = 0;
    std::vector<int> group;
    VirtualTime begin{};
    VirtualDuration alone{};
    std::unique_ptr<RunningSchedule> running = nullptr;
    bool ended = false;
  };
  using Stacks = std::array<std::unique_ptr<HbmStack>, kHbmStacks>;

  std::array<HbmStack*, kHbmStacks> StacksOf(torus::ChipIndex chip) {
    Stacks& stacks = stacks_[chip];
    std::array<HbmStack*, kHbmStacks> all{};
    for (std::size_t i = 0; i < kHbmStacks; ++i) {
      if (!stacks.at(i)) stacks.at(i) = std::make_unique<HbmStack>(queue_, stack_rate_);
      all.at(i) = stacks.at(i).get();
    }
    return all;
  }

  const isa::Instruction& Of(std::uint32_t instruction) const {
    return ready_.program.instructions[instruction];
  }

  void Post(int rank, std::uint32_t instruction) {
    const std::vector<int> group =
        isa::GroupOf(Of(instruction), rank, static_cast<int>(ranks_.size()));
    std::size_t& posted = posted_[{instruction, group.front()}];
    if (++posted < group.size()) return;
    posted_.erase({instruction, group.front()});
    collectives_.push_back({.instruction = instruction, .group = group});
    BeginThoseThatCan();
  }

  // In the order of the last rank's post.
  void BeginThoseThatCan() {
    for (Collective& one : collectives_) {
      if (one.running != nullptr || one.ended) continue;
      const bool waits = std::ranges::any_of(one.group, [this](int rank) { return IsBusy(rank); });
      if (!waits) Begin(one);
    }
  }

  void Begin(Collective& one) {
    for (const int rank : one.group) IsBusy(rank) = true;
    const isa::Instruction& instruction = Of(one.instruction);
    status_.Update(effects_.collect(instruction, one.group));
    const absl::StatusOr<const Plan*> plan = PlanOf(one);
    status_.Update(plan.status());
    if (!status_.ok()) return;
    one.begin = queue_.now();
    one.alone = (*plan)->times.end - (*plan)->times.start;
    one.running = std::make_unique<RunningSchedule>(
        (*plan)->schedule, fabric_, queue_, transfer_,
        [this, &one, plan = *plan](std::uint32_t step, VirtualDuration work,
                                   std::function<void()> done) {
          const StepTimes& times = plan->times.steps.at(step);
          Work(one, work, times.end - times.departure, std::move(done));
        },
        [this, &one](const absl::Status& status) {
          status_.Update(status);
          if (status.ok()) End(one);
        });
  }

  // Each stack of the group moves as many bytes as in `work` at its whole rate, in no less than
  // `alone`.
  void Work(const Collective& one, VirtualDuration work, VirtualDuration alone,
            const std::function<void()>& done) {
    std::set<std::pair<torus::ChipIndex, std::size_t>> stacks;
    for (const int rank : one.group) {
      const MachineRank& its = ranks_[static_cast<std::size_t>(rank)];
      stacks.emplace(its.chip, its.stack);
    }
    const auto bytes = static_cast<std::uint64_t>(static_cast<Wide>(work.count()) * stack_rate_ /
                                                  kPicosecondsPerSecond) +
                       1;
    const auto most = static_cast<std::uint64_t>(static_cast<Wide>(bytes) * kPicosecondsPerSecond /
                                                 static_cast<Wide>(alone.count())) +
                      1;
    const auto left = std::make_shared<std::size_t>(stacks.size());
    for (const auto& [chip, stack] : stacks) {
      StacksOf(chip).at(stack)->Share(bytes, most, [left, done] {
        if (--*left == 0) done();
      });
    }
  }

  void End(Collective& one) {
    one.ended = true;
    for (const int rank : one.group) {
      IsBusy(rank) = false;
      engines_[static_cast<std::size_t>(rank)]->EndCollective(one.instruction, one.begin,
                                                              one.alone);
    }
    BeginThoseThatCan();
    // This function is called from inside the collective: the next event takes it out.
    queue_.Schedule(queue_.now(), EventPriority::kStart, [this] {
      collectives_.remove_if([](const Collective& done) { return done.ended; });
    });
  }

  absl::StatusOr<const Plan*> PlanOf(const Collective& one) {
    const isa::Instruction& instruction = Of(one.instruction);
    // The gathered bytes of an all-gather, else the bytes that a rank sends.
    const bool gathers = instruction.opcode == isa::Opcode::kAllGather;
    const isa::View& whole = instruction.operands[gathers ? 0 : 1];
    const ElementType type = ready_.program.Of(whole).type;
    const Request request = {.operation = OperationOf(instruction.opcode),
                             .bytes = static_cast<std::uint64_t>(whole.Count()) * Size(type),
                             .type = type};
    std::vector<Member> members;
    std::set<std::size_t> stacks;  // of the last member
    for (const int rank : one.group) {
      const MachineRank& its = ranks_[static_cast<std::size_t>(rank)];
      if (members.empty() || members.back().chip != its.chip) {
        members.push_back({.chip = its.chip, .ranks = 0});
        stacks.clear();
      }
      stacks.insert(its.stack);
      members.back().banks = static_cast<int>(stacks.size());
      ++members.back().ranks;
    }
    const std::tuple key(request.operation, request.bytes, request.type, members);
    const auto known = plans_.find(key);
    if (known != plans_.end()) return known->second.get();
    TAHOMA_ASSIGN_OR_RETURN(Plan plan, PlanCollective(request, members, fabric_.domain(0)));
    return plans_.emplace(key, std::make_unique<Plan>(std::move(plan))).first->second.get();
  }

  char& IsBusy(int rank) { return busy_[static_cast<std::size_t>(rank)]; }

  const isa::Assembled& ready_;
  const std::span<const MachineRank> ranks_;
  const std::uint64_t stack_rate_;
  const MachineEffects& effects_;
  EventQueue queue_;
  Fabric fabric_;
  Transfer transfer_;
  std::map<torus::ChipIndex, Stacks> stacks_;
  std::vector<std::unique_ptr<CoreEngines>> engines_;  // by rank
  std::vector<char> busy_;                             // by rank: a collective is under way
  // The number of posts, by instruction and first rank of the group.
  std::map<std::pair<std::uint32_t, int>, std::size_t> posted_;
  std::list<Collective> collectives_;  // in the order of the last posts
  // By request and members.
  std::map<std::tuple<Operation, std::uint64_t, ElementType, std::vector<Member>>,
           std::unique_ptr<Plan>>
      plans_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<MachineRun> RunMachine(const isa::Assembled& ready,
                                      std::span<const MachineRank> ranks, const Fabric& links,
                                      const hw::CoreProfile& profile, const CoreRunOptions& options,
                                      const MachineEffects& effects) {
  return Machine(ready, ranks, links, profile, options, effects).Run();
}

}  // namespace tahoma::sim

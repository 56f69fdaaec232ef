#include "sim-node/serve/program_calls.h"

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/hw/core_profile.h"
#include "lib/isa/assemble.h"
#include "lib/isa/binary.h"
#include "lib/isa/check.h"
#include "lib/isa/instruction.h"
#include "lib/wire/fields.h"
#include "sim-node/emulator/core/core_memory.h"
#include "sim-node/emulator/core/engines.h"
#include "sim-node/emulator/core/execute.h"
#include "sim-node/emulator/core/timeline.h"

namespace tahoma::sim {
namespace {

constexpr std::int64_t kMaxAddress = std::numeric_limits<std::int64_t>::max() / 2;
constexpr std::int64_t kMaxNumber = 127;         // of a chip or core of a claim
constexpr std::string_view kCoreVersion = "v3";  // what the instructions and times are of

// The memory of the core's chip, from the program's first tensor.
class ChipMemory final : public HbmPort {
 public:
  ChipMemory(ClaimMemory& memory, torus::ChipIndex chip, std::uint64_t first)
      : memory_(memory), chip_(chip), first_(first) {}

  absl::Status Read(std::uint64_t address, std::span<std::byte> to) override {
    TAHOMA_ASSIGN_OR_RETURN(
        const std::string bytes,
        memory_.Read({.at = {.chip = chip_, .address = first_ + address}, .bytes = to.size()}));
    std::ranges::copy(std::as_bytes(std::span(bytes)), to.begin());
    return absl::OkStatus();
  }
  absl::Status Write(std::uint64_t address, std::span<const std::byte> from) override {
    const std::string bytes(reinterpret_cast<const char*>(from.data()), from.size());
    return memory_.Write({.chip = chip_, .address = first_ + address}, bytes);
  }

 private:
  ClaimMemory& memory_;
  const torus::ChipIndex chip_;
  const std::uint64_t first_;
};

// Multiply-adds; another element costs as much processor time as kWorkOfElement of them.
std::uint64_t WorkOf(const isa::Program& program) {
  std::uint64_t work = 0;
  for (const isa::Instruction& instruction : program.instructions) {
    std::uint64_t one = 0;
    for (const isa::View& view : instruction.operands) {
      one = std::max(one, static_cast<std::uint64_t>(view.rows.count * view.FreeCount()));
    }
    if (instruction.opcode == isa::Opcode::kMatmul) {
      const isa::View& to = instruction.operands[0];
      one = static_cast<std::uint64_t>(to.rows.count * to.FreeCount() *
                                       instruction.operands[1].rows.count *
                                       (instruction.double_row ? 2 : 1));
    } else {
      one *= kWorkOfElement;
    }
    work += std::min(one, kMaxWork);
    if (work > kMaxWork) return work;
  }
  return work;
}

Json ReplyOf(const CoreRun& run, const isa::Program& program, const ClaimCore& core,
             const hw::CoreProfile& profile) {
  Json resources = Json::array();
  for (std::size_t i = 0; i < run.resources.size(); ++i) {
    const ResourceUse& use = run.resources[i];
    if (use.instructions == 0) continue;
    resources.push_back({{"name", run.NameOf(i)},
                         {"busyPs", use.busy.count()},
                         {"instructions", use.instructions}});
  }
  return {{"profile", profile.name},
          {"chip", core.chip.value()},
          {"core", core.core},
          {"instructions", program.instructions.size()},
          {"timePs", run.time.count()},
          {"boundPs", run.bound().count()},
          {"bound", run.NameOf(run.busiest)},
          {"hbmBytes", run.hbm_bytes},
          {"leftOut", run.left_out},
          {"resources", std::move(resources)}};
}

Json CountsJson(const CoreCounts& counts) {
  Json engines = Json::object();
  for (std::size_t engine = 0; engine < counts.engines.size(); ++engine) {
    engines[std::string(isa::Name(static_cast<isa::Engine>(engine)))] =
        counts.engines.at(engine).count();
  }
  const auto ended = [&](ProgramEnd end) { return counts.ended.at(static_cast<std::size_t>(end)); };
  return {{"completed", ended(ProgramEnd::kCompleted)},
          {"programErrors", ended(ProgramEnd::kProgramError)},
          {"hardwareErrors", ended(ProgramEnd::kHardwareError)},
          {"inUseNs", counts.in_use.count()},
          {"timePs", counts.time.count()},
          {"enginesPs", std::move(engines)},
          {"hbmBytes", counts.hbm_bytes},
          {"flops", counts.flops}};
}

}  // namespace

absl::StatusOr<ClaimCore> CoreOfClaim(const Instance& instance, const HeldClaim& claim,
                                      std::int64_t chip, std::int64_t core) {
  const hw::ChipModel& model = *instance.type().chip;
  if (model.core_version != kCoreVersion) {
    return Unimplemented("programs run on NeuronCore-{} only; a {} has NeuronCore-{}", kCoreVersion,
                         instance.type().name, model.core_version);
  }
  const std::vector<int> chips = claim.TouchedChips();
  if (chip >= static_cast<std::int64_t>(chips.size())) {
    return OutOfRange("coreRun.chip is {}; the claim has chips 0 to {}", chip, chips.size() - 1);
  }
  const int index = chips[static_cast<std::size_t>(chip)];
  const std::vector<int> cores = claim.CoresOn(index, hw::LogicalCores(model, claim.lnc));
  if (core >= static_cast<std::int64_t>(cores.size())) {
    return OutOfRange("coreRun.core is {}; the claim has cores 0 to {} of the chip", core,
                      cores.size() - 1);
  }
  return ClaimCore{.chip = torus::ChipIndex(index),
                   .core = cores[static_cast<std::size_t>(core)],
                   .physical = claim.lnc};
}

absl::Status MayRun(const Instance& instance, std::string_view token, torus::ChipIndex chip) {
  const std::optional<ChipFault> fault = instance.chip(chip.value()).fault;
  if (fault) {
    return Aborted("{}: chip {} is broken: {}", FaultStatus(*fault), chip.value(),
                   FaultName(*fault));
  }
  return instance.FindClaim(token).status();
}

// Holds a core while a program runs there.
class ProgramCalls::Seat {
 public:
  Seat(ProgramCalls& calls, const ClaimCore& core)
      : calls_(calls), core_(core), taken_(calls.Take(core)) {}
  ~Seat() {
    if (taken_) calls_.GiveBack(core_);
  }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;
  bool taken() const { return taken_; }

 private:
  ProgramCalls& calls_;
  const ClaimCore core_;
  const bool taken_;
};

bool ProgramCalls::Take(const ClaimCore& core) {
  const MutexLock lock(mutex_);
  return busy_.insert(core).second;
}

void ProgramCalls::GiveBack(const ClaimCore& core) {
  const MutexLock lock(mutex_);
  busy_.erase(core);
}

absl::StatusOr<wire::Reply> ProgramCalls::Run(const wire::Request& request, const ClaimCore& core,
                                              ClaimMemory& memory,
                                              absl::FunctionRef<absl::Status()> may_run) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(request.params, kCoreRun));
  wire::Fields fields(json, std::string(kCoreRun));
  const auto first = static_cast<std::uint64_t>(fields.IntOr("address", 0, kMaxAddress, 0));
  const bool data = fields.BoolOr("data", true);
  const bool timeline = fields.BoolOr("timeline", false);
  TAHOMA_RETURN_IF_ERROR(fields.status());
  TAHOMA_ASSIGN_OR_RETURN(isa::Program program, isa::Decode(request.payload));
  TAHOMA_RETURN_IF_ERROR(isa::CheckProgram(program));
  if (data && WorkOf(program) > kMaxWork) {
    return ResourceExhausted(
        "the program has more than {} multiply-adds, a copied element counted as {}; run without "
        "data",
        kMaxWork, kWorkOfElement);
  }
  TAHOMA_ASSIGN_OR_RETURN(const isa::Assembled ready, isa::Assemble(std::move(program)));
  TAHOMA_RETURN_IF_ERROR(memory.Check({.at = {.chip = core.chip, .address = first},
                                       .bytes = static_cast<std::uint64_t>(ready.hbm_bytes)}));
  if (ready.program.Cores() > core.physical) {
    return FailedPrecondition(
        "the program runs on {} physical cores; core {} of chip {} is {}: claim with LNC 2",
        ready.program.Cores(), core.core, core.chip.value(), core.physical);
  }
  const Seat seat(*this, core);
  if (!seat.taken()) {
    return Unavailable("core {} of chip {} runs a program; try again, or use another core",
                       core.core, core.chip.value());
  }
  std::vector<CoreMemory> own(static_cast<std::size_t>(ready.program.Cores()));
  ChipMemory hbm(memory, core.chip, first);
  const hw::CoreProfile& profile = hw::kTrainium2Core;
  const PhysicalCore first_core = {.chip = core.chip, .core = core.core * core.physical};
  counters_.Begin(first_core, ready.program.Cores());
  const absl::StatusOr<CoreRun> run = RunCore(
      ready, profile, {.most_intervals = timeline ? kMaxIntervals : 0},
      [&](const auto& instruction, const auto* other) -> absl::Status {
        TAHOMA_RETURN_IF_ERROR(may_run());
        return data ? Execute(ready.program, instruction, other, own, hbm) : absl::OkStatus();
      });
  counters_.End(first_core, ready.program.Cores(), run);
  TAHOMA_RETURN_IF_ERROR(run.status());
  wire::Reply reply{.result = ReplyOf(*run, ready.program, core, profile).dump()};
  if (timeline) {
    reply.payload =
        CoreTimeline(*run, ready.program, {.chip = core.chip.value(), .core = core.core});
  }
  return reply;
}

std::string ProgramCalls::CountersOf(const HeldClaim& claim, int cores_of_chip,
                                     const ClaimMemory& memory) const {
  Json chips = Json::array();
  for (const int index : claim.TouchedChips()) {
    const torus::ChipIndex chip(index);
    Json cores = Json::array();
    for (const int core : claim.CoresOn(index, cores_of_chip)) {
      Json physical = Json::array();
      for (int i = 0; i < claim.lnc; ++i) {
        physical.push_back(CountsJson(counters_.Of({.chip = chip, .core = core * claim.lnc + i})));
      }
      cores.push_back({{"core", core},
                       {"id", index * cores_of_chip + core},
                       {"physical", std::move(physical)}});
    }
    chips.push_back({{"chip", index},
                     {"capacityBytes", memory.capacity(chip)},
                     {"usedBytes", memory.written_bytes(chip)},
                     {"cores", std::move(cores)}});
  }
  return Json{{"clockNs", clock_.MonotonicNow().time_since_epoch().count()},
              {"chips", std::move(chips)}}
      .dump();
}

void AddProgramCalls(NodeServer& server, const LiveInstance& live, ProgramCalls& calls,
                     MemoryCalls& memory,
                     const std::function<void(const std::string& token)>& called) {
  const auto call = [&live, &calls, &memory, called](
                        const Caller& caller,
                        const wire::Request& request) -> absl::StatusOr<wire::Reply> {
    called(caller.token);
    TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(request.params, kCoreRun));
    wire::Fields fields(json, std::string(kCoreRun));
    const std::int64_t chip = fields.IntOr("chip", 0, kMaxNumber, 0);
    const std::int64_t number = fields.IntOr("core", 0, kMaxNumber, 0);
    TAHOMA_RETURN_IF_ERROR(fields.status());
    TAHOMA_ASSIGN_OR_RETURN(const ClaimCore core, live.Read([&](const Instance& instance) {
      return CoreOfClaim(instance, caller.claim, chip, number);
    }));
    return memory.With(live, caller, [&](ClaimMemory& own, const auto&) {
      return calls.Run(request, core, own, [&] {
        return live.Read(
            [&](const Instance& instance) { return MayRun(instance, caller.token, core.chip); });
      });
    });
  };
  const auto count = [&live, &calls, &memory, called](
                         const Caller& caller,
                         const wire::Request&) -> absl::StatusOr<wire::Reply> {
    called(caller.token);
    const int cores = live.Read([&](const Instance& instance) {
      return hw::LogicalCores(*instance.type().chip, caller.claim.lnc);
    });
    return memory.With(live, caller, [&](ClaimMemory& own, const auto&) {
      return wire::Reply{.result = calls.CountersOf(caller.claim, cores, own)};
    });
  };
  server.AddWorkloadCall(std::string(kCoreCounters), count);
  server.AddWorkloadCall(std::string(kCoreRun), call, [](const Json& params) -> std::size_t {
    const Json* timeline = FindMember(params, "timeline");
    return timeline != nullptr && *timeline == true ? kMaxTimelineBytes : 0;
  });
}

}  // namespace tahoma::sim

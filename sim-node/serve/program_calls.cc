#include "sim-node/serve/program_calls.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/hw/catalogue.h"
#include "lib/hw/core_profile.h"
#include "lib/isa/assemble.h"
#include "lib/isa/binary.h"
#include "lib/isa/check.h"
#include "lib/isa/instruction.h"
#include "lib/isa/ranks.h"
#include "lib/wire/fields.h"
#include "sim-node/emulator/core/core_memory.h"
#include "sim-node/emulator/core/engines.h"
#include "sim-node/emulator/core/execute.h"
#include "sim-node/emulator/core/timeline.h"
#include "sim-node/emulator/machine/collect.h"
#include "sim-node/emulator/machine/machine.h"
#include "sim-node/participants/link_views.h"
#include "sim-node/serve/communicator_of_instance.h"

namespace tahoma::sim {
namespace {

constexpr std::int64_t kMaxAddress = std::numeric_limits<std::int64_t>::max() / 2;
constexpr std::int64_t kMaxNumber = 127;          // of a chip or core of a claim
constexpr std::uint64_t kRunsWithoutData = 1024;  // instructions between two looks at the chip
constexpr std::uint64_t kAsksOfCaller = 64;       // looks at the chip between two at the caller
constexpr std::string_view kCoreVersion = "v3";   // what the instructions and times are of

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
      one = std::max(one, static_cast<std::uint64_t>(view.Count()));
    }
    if (instruction.opcode == isa::Opcode::kMatmul) {
      const isa::View& to = instruction.operands[0];
      one = static_cast<std::uint64_t>(to.Count() * instruction.operands[1].rows.count *
                                       (instruction.double_row ? 2 : 1));
    } else {
      one *= kWorkOfElement;
    }
    work += std::min(one, kMaxWork);
    if (work > kMaxWork) return work;
  }
  return work;
}

Json RankJson(const CoreRun& run, const ClaimCore& core) {
  Json resources = Json::array();
  for (std::size_t i = 0; i < run.resources.size(); ++i) {
    const ResourceUse& use = run.resources[i];
    if (use.instructions == 0) continue;
    resources.push_back({{"name", run.NameOf(i)},
                         {"busyPs", use.busy.count()},
                         {"instructions", use.instructions}});
  }
  return {{"chip", core.chip.value()},        {"core", core.core},
          {"timePs", run.time.count()},       {"boundPs", run.bound().count()},
          {"bound", run.NameOf(run.busiest)}, {"hbmBytes", run.hbm_bytes},
          {"leftOut", run.left_out},          {"resources", std::move(resources)}};
}

wire::Reply ReplyOf(const MachineRun& run, const isa::Program& program,
                    std::span<const ProgramRank> ranks, const hw::CoreProfile& profile,
                    bool timeline) {
  Json of_ranks = Json::array();
  std::vector<RankTimeline> timelines;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const ClaimCore& core = ranks[rank].core;
    of_ranks.push_back(RankJson(run.ranks[rank], core));
    timelines.push_back({.run = &run.ranks[rank], .chip = core.chip.value(), .core = core.core});
  }
  const Json result = {{"profile", profile.name},
                       {"instructions", program.instructions.size()},
                       {"timePs", run.time.count()},
                       {"ranks", std::move(of_ranks)}};
  wire::Reply reply{.result = result.dump()};
  if (timeline) reply.payload = CoreTimeline(timelines, program);
  return reply;
}

// Where the program's tensors are for a rank.
MachineRank PlaceOf(const isa::Program& program, const ProgramRank& rank,
                    const InstanceLinks& links) {
  MachineRank place = {.chip = torus::ChipIndex(links.first_chip + rank.core.chip.value()),
                       .stack = rank.stack};
  for (const isa::Buffer& buffer : program.buffers) {
    std::size_t stack = place.stack;
    if (buffer.memory == isa::Memory::kHbm) {
      const std::uint64_t address = rank.address + static_cast<std::uint64_t>(*buffer.address);
      stack = rank.stacks.at(static_cast<std::size_t>(address / rank.bytes_of_stack));
    }
    place.of_buffer.push_back(stack);
  }
  return place;
}

// The memories of each rank of a run.
class RankMemories {
 public:
  RankMemories(const isa::Program& program, std::span<const ProgramRank> ranks,
               ClaimMemory& memory) {
    for (const ProgramRank& rank : ranks) {
      cores_.emplace_back(static_cast<std::size_t>(program.Cores()));
      hbm_.push_back(std::make_unique<ChipMemory>(memory, rank.core.chip, rank.address));
    }
  }
  std::span<CoreMemory> CoresOf(std::size_t rank) { return cores_[rank]; }
  HbmPort& HbmOf(std::size_t rank) { return *hbm_[rank]; }

 private:
  std::vector<std::vector<CoreMemory>> cores_;
  std::vector<std::unique_ptr<ChipMemory>> hbm_;
};

absl::StatusOr<MachineRun> RunOn(const isa::Assembled& ready, std::span<const ProgramRank> ranks,
                                 const InstanceLinks& links, const ProgramCalls::Options& options,
                                 const hw::CoreProfile& profile, ClaimMemory& memory,
                                 ProgramCalls::MayRunOn may_run) {
  std::vector<MachineRank> places;
  for (const ProgramRank& rank : ranks) places.push_back(PlaceOf(ready.program, rank, links));
  RankMemories memories(ready.program, ranks, memory);
  std::uint64_t carried = 0;
  const auto carry_out = [&](std::size_t rank, const isa::Instruction& instruction,
                             const isa::Instruction* other) -> absl::Status {
    if (options.data || carried++ % kRunsWithoutData == 0) {
      TAHOMA_RETURN_IF_ERROR(may_run(ranks[rank].core.chip));
    }
    if (!options.data) return absl::OkStatus();
    return Execute(ready.program, instruction, other, memories.CoresOf(rank), memories.HbmOf(rank),
                   options.rounding_seed);
  };
  const auto collect = [&](const isa::Instruction& collective,
                           std::span<const int> group) -> absl::Status {
    if (!options.data) return absl::OkStatus();
    std::vector<HbmPort*> ports;
    for (const int rank : group) ports.push_back(&memories.HbmOf(static_cast<std::size_t>(rank)));
    return Collect(ready.program, collective, ports);
  };
  return RunMachine(ready, places, links.fabric, profile,
                    {.most_intervals = options.timeline ? kMaxIntervals / ranks.size() : 0},
                    {.carry_out = carry_out, .collect = collect});
}

std::size_t StackOf(const hw::ChipModel& model, int lnc, int core) {
  return static_cast<std::size_t>(hw::HbmBank(model, lnc, core));
}

PhysicalCore FirstOf(const ClaimCore& core) {
  return {.chip = core.chip, .core = core.core * core.physical};
}

struct RunRequest {
  std::vector<RankRequest> ranks;
  ProgramCalls::Options options;
};

absl::StatusOr<RunRequest> ReadRunRequest(std::string_view params) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(params, kCoreRun));
  wire::Fields fields(json, std::string(kCoreRun));
  RunRequest request;
  for (const Json& item : fields.Array("ranks", isa::kRanksMax)) {
    wire::Fields one(item, fields.Path("ranks"));
    request.ranks.push_back(
        {.chip = one.IntOr("chip", 0, kMaxNumber, 0),
         .core = one.IntOr("core", 0, kMaxNumber, 0),
         .address = static_cast<std::uint64_t>(one.IntOr("address", 0, kMaxAddress, 0))});
    fields.Fail(one.status());
  }
  request.options = {.data = fields.BoolOr("data", true),
                     .timeline = fields.BoolOr("timeline", false)};
  if (fields.Has("roundingSeed")) {
    request.options.rounding_seed =
        static_cast<std::uint64_t>(fields.Int("roundingSeed", 0, kMaxAddress));
  }
  TAHOMA_RETURN_IF_ERROR(fields.status());
  if (request.ranks.empty()) {
    return InvalidArgument("coreRun.ranks is empty; expected 1 to {} cores", isa::kRanksMax);
  }
  return request;
}

// The claim's cores that are asked for. Those of a chip must follow one another.
absl::StatusOr<std::vector<ProgramRank>> RanksOf(const Instance& instance, const HeldClaim& claim,
                                                 std::span<const RankRequest> requests) {
  std::vector<ProgramRank> ranks;
  std::set<torus::ChipIndex> chips;
  std::set<ClaimCore> cores;
  for (const RankRequest& request : requests) {
    TAHOMA_ASSIGN_OR_RETURN(ProgramRank rank, RankOfClaim(instance, claim, request));
    const bool same_chip = !ranks.empty() && ranks.back().core.chip == rank.core.chip;
    if (!cores.insert(rank.core).second) {
      return InvalidArgument("coreRun.ranks names core {} of chip {} twice", request.core,
                             request.chip);
    }
    if (!same_chip && !chips.insert(rank.core.chip).second) {
      return InvalidArgument(
          "coreRun.ranks comes back to chip {}; expected the cores of a chip one after the other",
          request.chip);
    }
    ranks.push_back(std::move(rank));
  }
  return ranks;
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

absl::StatusOr<ProgramRank> RankOfClaim(const Instance& instance, const HeldClaim& claim,
                                        const RankRequest& request) {
  const hw::ChipModel& model = *instance.type().chip;
  if (model.core_version != kCoreVersion) {
    return Unimplemented("programs run on NeuronCore-{} only; a {} has NeuronCore-{}", kCoreVersion,
                         instance.type().name, model.core_version);
  }
  const std::vector<int> chips = claim.TouchedChips();
  if (request.chip >= static_cast<std::int64_t>(chips.size())) {
    return OutOfRange("chip {} of the claim; it has chips 0 to {}", request.chip, chips.size() - 1);
  }
  const int index = chips[static_cast<std::size_t>(request.chip)];
  const int all = hw::LogicalCores(model, claim.lnc);
  const std::vector<int> cores = claim.CoresOn(index, all);
  if (request.core >= static_cast<std::int64_t>(cores.size())) {
    return OutOfRange("core {} of a chip of the claim; it has cores 0 to {} there", request.core,
                      cores.size() - 1);
  }
  ProgramRank rank = {
      .core = {.chip = torus::ChipIndex(index),
               .core = cores[static_cast<std::size_t>(request.core)],
               .physical = claim.lnc},
      .address = request.address,
      .stack = StackOf(model, claim.lnc, cores[static_cast<std::size_t>(request.core)]),
      .bytes_of_stack =
          static_cast<std::uint64_t>(model.hbm_bytes) / static_cast<std::uint64_t>(all),
      .stacks = {}};
  for (const int core : cores) rank.stacks.push_back(StackOf(model, claim.lnc, core));
  return rank;
}

absl::StatusOr<InstanceLinks> LinksOf(const Instance& instance) {
  const Fabric healthy{LinksAround(instance)};
  TAHOMA_ASSIGN_OR_RETURN(const LinkOutlook outlook,
                          LinkOutlook::Of(healthy,
                                          {{.node = NodeIdOf(instance),
                                            .unhealthy = UnhealthyLinks(instance),
                                            .dead = DeadChips(instance)}},
                                          VirtualTime{}));
  return InstanceLinks{.fabric = outlook.fabric(), .first_chip = FirstChipOf(instance)};
}

absl::Status MayRun(const Instance& instance, std::string_view token, torus::ChipIndex chip) {
  const std::optional<ChipFault> fault = instance.chip(chip.value()).fault;
  if (fault) {
    return Aborted("{}: chip {} is broken: {}", FaultStatus(*fault), chip.value(),
                   FaultName(*fault));
  }
  return instance.FindClaim(token).status();
}

// Holds the cores while a program runs there.
class ProgramCalls::Seats {
 public:
  Seats(ProgramCalls& calls, std::span<const ProgramRank> ranks)
      : calls_(calls), ranks_(ranks), taken_(calls.Take(ranks)) {}
  ~Seats() {
    if (taken_.ok()) calls_.GiveBack(ranks_);
  }
  Seats(const Seats&) = delete;
  Seats& operator=(const Seats&) = delete;
  const absl::Status& taken() const { return taken_; }

 private:
  ProgramCalls& calls_;
  const std::span<const ProgramRank> ranks_;
  const absl::Status taken_;
};

absl::Status ProgramCalls::Take(std::span<const ProgramRank> ranks) {
  const MutexLock lock(mutex_);
  for (const ProgramRank& rank : ranks) {
    if (busy_.contains(rank.core)) {
      return Unavailable("core {} of chip {} runs a program; try again, or use another core",
                         rank.core.core, rank.core.chip.value());
    }
  }
  for (const ProgramRank& rank : ranks) busy_.insert(rank.core);
  return absl::OkStatus();
}

void ProgramCalls::GiveBack(std::span<const ProgramRank> ranks) {
  const MutexLock lock(mutex_);
  for (const ProgramRank& rank : ranks) busy_.erase(rank.core);
}

absl::StatusOr<wire::Reply> ProgramCalls::Run(std::string_view program,
                                              std::span<const ProgramRank> ranks,
                                              const InstanceLinks& links, const Options& options,
                                              ClaimMemory& memory, MayRunOn may_run) {
  TAHOMA_ASSIGN_OR_RETURN(isa::Program decoded, isa::Decode(program));
  TAHOMA_RETURN_IF_ERROR(isa::CheckProgram(decoded));
  TAHOMA_RETURN_IF_ERROR(isa::CheckRanks(decoded, static_cast<int>(ranks.size())));
  if (decoded.instructions.size() > kMaxRankInstructions / ranks.size()) {
    return ResourceExhausted("{} instructions on {} ranks are more than {} together",
                             decoded.instructions.size(), ranks.size(), kMaxRankInstructions);
  }
  if (options.data && WorkOf(decoded) > kMaxWork / ranks.size()) {
    return ResourceExhausted(
        "the program has more than {} multiply-adds on all ranks, a copied element counted as {}; "
        "run without data",
        kMaxWork, kWorkOfElement);
  }
  TAHOMA_ASSIGN_OR_RETURN(const isa::Assembled ready, isa::Assemble(std::move(decoded)));
  const int cores = ready.program.Cores();
  for (const ProgramRank& rank : ranks) {
    TAHOMA_RETURN_IF_ERROR(memory.Check({.at = {.chip = rank.core.chip, .address = rank.address},
                                         .bytes = static_cast<std::uint64_t>(ready.hbm_bytes)}));
    if (cores > rank.core.physical) {
      return FailedPrecondition(
          "the program runs on {} physical cores; core {} of chip {} is {}: claim with LNC 2",
          cores, rank.core.core, rank.core.chip.value(), rank.core.physical);
    }
  }
  const Seats seats(*this, ranks);
  TAHOMA_RETURN_IF_ERROR(seats.taken());
  for (const ProgramRank& rank : ranks) counters_.Begin(FirstOf(rank.core), cores);
  const hw::CoreProfile& profile = hw::kTrainium2Core;
  const absl::StatusOr<MachineRun> run =
      RunOn(ready, ranks, links, options, profile, memory, may_run);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    counters_.End(FirstOf(ranks[rank].core), cores,
                  run.ok() ? absl::StatusOr<CoreRun>(run->ranks[rank]) : run.status());
  }
  TAHOMA_RETURN_IF_ERROR(run.status());
  return ReplyOf(*run, ready.program, ranks, profile, options.timeline);
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
    TAHOMA_ASSIGN_OR_RETURN(const RunRequest asked, ReadRunRequest(request.params));
    TAHOMA_ASSIGN_OR_RETURN(const std::vector<ProgramRank> ranks,
                            live.Read([&](const Instance& instance) {
                              return RanksOf(instance, caller.claim, asked.ranks);
                            }));
    TAHOMA_ASSIGN_OR_RETURN(const InstanceLinks links, live.Read(LinksOf));
    std::uint64_t asks = 0;
    const auto may_run = [&](torus::ChipIndex chip) -> absl::Status {
      if (asks++ % kAsksOfCaller == 0 && request.wanted && !request.wanted()) {
        return absl::CancelledError("the caller has gone");
      }
      return live.Read(
          [&](const Instance& instance) { return MayRun(instance, caller.token, chip); });
    };
    return memory.With(live, caller, [&](ClaimMemory& own, const auto&) {
      return calls.Run(request.payload, ranks, links, asked.options, own, may_run);
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

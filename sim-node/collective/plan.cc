#include "sim-node/collective/plan.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

// Physical cores of a chip: with LNC 1 each is a rank (trainium2-hardware 3).
constexpr int kMaxRanksPerChip = 8;

struct OperationName {
  Operation operation;
  std::string_view name;
};
constexpr std::array kOperations = {
    OperationName{Operation::kAllReduce, "all_reduce"},
    OperationName{Operation::kAllReduce, "allreduce"},
    OperationName{Operation::kAllReduce, "allr"},
    OperationName{Operation::kAllGather, "all_gather"},
    OperationName{Operation::kAllGather, "allgather"},
    OperationName{Operation::kAllGather, "allg"},
    OperationName{Operation::kReduceScatter, "reduce_scatter"},
    OperationName{Operation::kReduceScatter, "reducescatter"},
    OperationName{Operation::kReduceScatter, "redsct"},
};

absl::Status Check(const Request& request, const std::vector<Member>& members,
                   const TorusLinks& links) {
  if (members.empty()) return InvalidArgument("a collective needs at least one chip");
  if (request.bytes % Size(request.type) != 0) {
    return InvalidArgument("{} bytes are not a whole number of {} elements", request.bytes,
                           Name(request.type));
  }
  torus::ChipMask seen = 0;
  for (const Member& member : members) {
    if (member.chip.value() >= links.torus().chip_count()) {
      return InvalidArgument("chip {} is not in a torus of {}", member.chip.value(),
                             links.torus().ToString());
    }
    if ((seen & MaskOf(member.chip)) != 0) {
      return InvalidArgument("chip {} takes part twice", member.chip.value());
    }
    if (member.ranks < 1 || member.ranks > kMaxRanksPerChip) {
      return InvalidArgument("chip {} has {} ranks; expected 1 to {}", member.chip.value(),
                             member.ranks, kMaxRanksPerChip);
    }
    seen |= MaskOf(member.chip);
  }
  return absl::OkStatus();
}

ChipSet SetOf(const std::vector<Member>& members, const TorusLinks& links) {
  std::vector<torus::ChipIndex> chips;
  for (const Member& member : members) chips.push_back(member.chip);
  return {links, std::move(chips)};
}

// The fullest chip decides: it reads every rank's buffer and writes one, or the other way round.
void AddOnChipWork(const Request& request, const std::vector<Member>& members,
                   const TorusLinks& links, Schedule& schedule) {
  int ranks = 1;
  for (const Member& member : members) ranks = std::max(ranks, member.ranks);
  if (ranks == 1) return;
  const VirtualDuration work =
      links.timing().step +
      TransferTime(request.bytes * static_cast<std::uint64_t>(ranks + 1), kHbmBytesPerSecond);
  if (request.operation != Operation::kAllGather) schedule.before = work;
  if (request.operation != Operation::kReduceScatter) schedule.after = work;
}

absl::StatusOr<Plan> Timed(Algorithm algorithm, const Request& request, const ChipSet& set,
                           const std::vector<Member>& members, const TorusLinks& links) {
  std::vector<int> weights;
  for (const Member& member : members) weights.push_back(member.ranks);
  const Layout layout =
      Layout::Weighted(weights, request.bytes / Size(request.type), Size(request.type));
  Plan plan{.algorithm = algorithm, .schedule = {}, .times = {}};
  plan.schedule.through = set.through();
  for (const Phase phase : {Phase::kReduceScatter, Phase::kAllGather}) {
    if (phase == Phase::kReduceScatter && request.operation == Operation::kAllGather) continue;
    if (phase == Phase::kAllGather && request.operation == Operation::kReduceScatter) continue;
    std::vector<Step> steps = Steps(algorithm, phase, set, links, layout);
    std::move(steps.begin(), steps.end(), std::back_inserter(plan.schedule.steps));
  }
  AddOnChipWork(request, members, links, plan.schedule);
  TAHOMA_ASSIGN_OR_RETURN(auto times, TimeSchedules({&plan.schedule}, links));
  plan.times = std::move(times[0]);
  return plan;
}

}  // namespace

std::string_view Name(Operation operation) {
  for (const OperationName& row : kOperations) {
    if (row.operation == operation) return row.name;
  }
  return "";
}

absl::StatusOr<Operation> ParseOperation(std::string_view name) {
  std::string known;
  for (const OperationName& row : kOperations) {
    if (row.name == name) return row.operation;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  return InvalidArgument("unknown operation \"{}\"; expected one of {}", name, known);
}

absl::StatusOr<Plan> PlanWith(Algorithm algorithm, const Request& request,
                              const std::vector<Member>& members, const TorusLinks& links) {
  TAHOMA_RETURN_IF_ERROR(Check(request, members, links));
  const ChipSet set = SetOf(members, links);
  if (algorithm == Algorithm::kRdh && set.box() == nullptr) {
    return InvalidArgument("rdh needs a box with sides 1, 2 and 4; {} chips here are none",
                           set.size());
  }
  return Timed(algorithm, request, set, members, links);
}

absl::StatusOr<Plan> PlanCollective(const Request& request, const std::vector<Member>& members,
                                    const TorusLinks& links, std::span<const AlgorithmRule> rules) {
  TAHOMA_RETURN_IF_ERROR(Check(request, members, links));
  const ChipSet set = SetOf(members, links);
  if (links.Unhealthy(set.through()).empty()) {
    Algorithm chosen = Algorithm::kRing;
    for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule) {
      if (request.bytes <= rule->max_bytes) chosen = rule->algorithm;
    }
    if (chosen == Algorithm::kRdh && set.box() == nullptr) chosen = Algorithm::kRing;
    return Timed(chosen, request, set, members, links);
  }
  std::optional<Plan> best;
  for (const Algorithm algorithm : {Algorithm::kMesh, Algorithm::kRdh, Algorithm::kRing}) {
    if (algorithm == Algorithm::kRdh && set.box() == nullptr) continue;
    TAHOMA_ASSIGN_OR_RETURN(Plan plan, Timed(algorithm, request, set, members, links));
    if (!best || plan.times.end < best->times.end) best = std::move(plan);
  }
  return *std::move(best);
}

}  // namespace tahoma::sim

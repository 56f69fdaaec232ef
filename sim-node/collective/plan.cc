#include "sim-node/collective/plan.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "lib/base/status.h"
#include "sim-node/collective/moves.h"
#include "sim-node/collective/trees.h"

namespace tahoma::sim {
namespace {

// Physical cores of a chip: with LNC 1 each is a rank (trainium2-hardware 3).
constexpr int kMaxRanksPerChip = 8;

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

VirtualDuration HbmTime(const TorusLinks& links, std::uint64_t touched) {
  return links.timing().step + TransferTime(touched, kHbmBytesPerSecond);
}

// The fullest chip decides: it reads every rank's buffer and writes one, or the other way round.
void AddOnChipWork(const Request& request, const std::vector<Member>& members,
                   const TorusLinks& links, Schedule& schedule) {
  int ranks = 1;
  for (const Member& member : members) ranks = std::max(ranks, member.ranks);
  if (ranks == 1) return;
  const VirtualDuration work =
      HbmTime(links, request.bytes * static_cast<std::uint64_t>(ranks + 1));
  if (Combines(request.operation)) schedule.before = work;
  if (request.operation != Operation::kReduceScatter) schedule.after = work;
}

Layout LayoutOf(const Request& request, const std::vector<Member>& members) {
  std::vector<int> weights;
  for (const Member& member : members) weights.push_back(member.ranks);
  return Layout::Weighted(weights, request.bytes / Size(request.type), Size(request.type));
}

// The phases that the operation needs, each as `steps_of(phase)`.
template <typename StepsOf>
std::vector<Step> Phases(Operation operation, const StepsOf& steps_of) {
  std::vector<Step> steps;
  if (operation != Operation::kAllGather) steps = steps_of(Phase::kReduceScatter);
  if (operation == Operation::kReduceScatter) return steps;
  std::vector<Step> more = steps_of(Phase::kAllGather);
  std::move(more.begin(), more.end(), std::back_inserter(steps));
  return steps;
}

absl::StatusOr<Plan> Timed(Plan plan, const TorusLinks& links) {
  TAHOMA_ASSIGN_OR_RETURN(auto times, TimeSchedules({&plan.schedule}, links));
  plan.times = std::move(times[0]);
  return plan;
}

// What all plans of one request share.
struct Question {
  const Request& request;
  const std::vector<Member>& members;
  const ChipSet& set;
  const TorusLinks& links;

  absl::StatusOr<Plan> Answer(Algorithm algorithm, std::vector<Step> steps) const {
    Plan plan{.algorithm = algorithm, .schedule = {}, .times = {}};
    plan.schedule.steps = std::move(steps);
    plan.schedule.through = set.through();
    AddOnChipWork(request, members, links, plan.schedule);
    return Timed(std::move(plan), links);
  }
};

absl::StatusOr<Plan> PlanExchange(const Question& asked) {
  TAHOMA_ASSIGN_OR_RETURN(Exchange exchange,
                          ExchangeOf(asked.request, asked.members, asked.set, asked.links));
  Plan plan{.algorithm = Algorithm::kMesh, .schedule = {}, .times = {}};
  plan.schedule.through = asked.set.through();
  plan.schedule.steps.push_back(std::move(exchange.step));
  plan.sources = std::move(exchange.sources);
  TAHOMA_ASSIGN_OR_RETURN(plan, Timed(std::move(plan), asked.links));
  // Ranks on one chip copy beside the messages; each byte is read and written.
  const VirtualDuration copies = HbmTime(asked.links, 2 * exchange.on_chip_bytes);
  const VirtualDuration messages = plan.times.end - plan.times.start;
  plan.schedule.after = std::max(copies - messages, VirtualDuration(0));
  plan.times.end += plan.schedule.after;
  return plan;
}

// The fastest cut into parts.
absl::StatusOr<Plan> PlanTrees(const Question& asked) {
  const ChipSet& set = asked.set;
  const Layout layout = LayoutOf(asked.request, asked.members);
  std::optional<Plan> best;
  for (const int parts : kTreeParts) {
    if (best && set.size() * static_cast<std::size_t>(parts) > kTreePiecesMax) break;
    bool joined = true;
    const auto taken = [&](std::optional<std::vector<Step>> steps) {
      joined = joined && steps.has_value();
      return joined ? *std::move(steps) : std::vector<Step>();
    };
    std::vector<Step> steps =
        asked.request.operation == Operation::kBroadcast
            ? taken(TreeBroadcastSteps(set, asked.links, layout, parts))
            : Phases(asked.request.operation, [&](Phase phase) {
                return taken(TreeSteps(phase, set, asked.links, layout, parts));
              });
    if (!joined) {
      return FailedPrecondition(
          "tree needs chips that are joined by links of their own; {} are not", set.size());
    }
    TAHOMA_ASSIGN_OR_RETURN(Plan plan, asked.Answer(Algorithm::kTree, std::move(steps)));
    if (!best || plan.times.end < best->times.end) best = std::move(plan);
  }
  return *std::move(best);
}

absl::StatusOr<Plan> PlanSteps(Algorithm algorithm, const Question& asked) {
  if (algorithm == Algorithm::kTree) return PlanTrees(asked);
  const Layout layout = LayoutOf(asked.request, asked.members);
  const Operation operation = asked.request.operation;
  if (operation == Operation::kBroadcast) {
    return asked.Answer(algorithm, BroadcastSteps(algorithm, asked.set, asked.links, layout));
  }
  auto plan = asked.Answer(algorithm, Phases(operation, [&](Phase phase) {
                             return Steps(algorithm, phase, asked.set, asked.links, layout);
                           }));
  if (!plan.ok() || algorithm != Algorithm::kRdh) return plan;
  const torus::Shape& torus = asked.links.torus();
  const std::vector<Lane> lanes = StaggeredLanes(*asked.set.box(), torus);
  if (lanes.empty()) return plan;
  auto staggered = asked.Answer(algorithm, Phases(operation, [&](Phase phase) {
                                  return HalvingSteps(phase, asked.set, torus, layout, lanes);
                                }));
  return staggered.ok() && staggered->times.end < plan->times.end ? staggered : plan;
}

absl::StatusOr<Plan> Fastest(const Question& asked) {
  // Any set is served by a mesh, if by anything.
  TAHOMA_ASSIGN_OR_RETURN(Plan best, PlanSteps(Algorithm::kMesh, asked));
  for (const Algorithm algorithm : {Algorithm::kRdh, Algorithm::kRing, Algorithm::kTree}) {
    if (algorithm == Algorithm::kRdh && asked.set.box() == nullptr) continue;
    auto plan = PlanSteps(algorithm, asked);
    if (plan.ok() && plan->times.end < best.times.end) best = *std::move(plan);
  }
  return best;
}

}  // namespace

ChipSet SetOf(const std::vector<Member>& members, const TorusLinks& links) {
  std::vector<torus::ChipIndex> chips;
  for (const Member& member : members) chips.push_back(member.chip);
  return {links, std::move(chips)};
}

absl::StatusOr<Plan> PlanWith(Algorithm algorithm, const Request& request,
                              const std::vector<Member>& members, const TorusLinks& links) {
  TAHOMA_RETURN_IF_ERROR(Check(request, members, links));
  const ChipSet set = SetOf(members, links);
  if (algorithm == Algorithm::kRdh && set.box() == nullptr) {
    return InvalidArgument("rdh needs a box with sides 1, 2 and 4; {} chips here are none",
                           set.size());
  }
  if (algorithm == Algorithm::kHier) {
    return InvalidArgument("hier needs chips of several units; here is one torus");
  }
  if (IsExchange(request.operation) && algorithm != Algorithm::kMesh) {
    return InvalidArgument("{} is no algorithm of {}; expected mesh", Name(algorithm),
                           Name(request.operation));
  }
  const Question asked{request, members, set, links};
  return IsExchange(request.operation) ? PlanExchange(asked) : PlanSteps(algorithm, asked);
}

absl::StatusOr<Plan> PlanCollective(const Request& request, const std::vector<Member>& members,
                                    const TorusLinks& links, std::span<const AlgorithmRule> rules) {
  TAHOMA_RETURN_IF_ERROR(Check(request, members, links));
  const ChipSet set = SetOf(members, links);
  const Question asked{request, members, set, links};
  if (IsExchange(request.operation)) return PlanExchange(asked);
  if (request.operation == Operation::kBroadcast || set.box() == nullptr ||
      links.IsDamaged(set.through())) {
    return Fastest(asked);
  }
  Algorithm chosen = Algorithm::kRing;
  for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule) {
    if (request.bytes <= rule->max_bytes) chosen = rule->algorithm;
  }
  return PlanSteps(chosen, asked);
}

}  // namespace tahoma::sim

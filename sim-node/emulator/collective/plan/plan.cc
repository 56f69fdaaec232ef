#include "sim-node/emulator/collective/plan/plan.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/closed_form.h"
#include "lib/collective/predict.h"
#include "lib/collective/trees.h"
#include "sim-node/emulator/collective/algorithms/moves.h"
#include "sim-node/emulator/collective/algorithms/trees.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"
#include "sim-node/emulator/collective/plan/plan_input.h"

namespace tahoma::sim {
namespace {

// Physical cores of a chip: with LNC 1 each is a rank (docs/reference/trainium2.md#logical-cores).
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
    if (member.banks < 1 || member.banks > collective::kHbmBanksMax) {
      return InvalidArgument("chip {} has buffers in {} HBM banks; expected 1 to {}",
                             member.chip.value(), member.banks, collective::kHbmBanksMax);
    }
    seen |= MaskOf(member.chip);
  }
  return absl::OkStatus();
}

// The ways in which a broadcast begins: the root gives each chip its block to gather, or all of the
// buffer.
enum class Scatter : std::uint8_t { kDirect, kHalving, kWhole };

absl::StatusOr<Plan> PlanSteps(const PlanInput& input, Algorithm algorithm,
                               Scatter scatter = Scatter::kDirect) {
  if (input.set.size() == 1) return Finish(input, algorithm, {});
  const Layout layout = LayoutOf(input);
  std::vector<Step> steps;
  if (input.request.operation == Operation::kBroadcast) {
    const bool whole = scatter == Scatter::kWhole;
    steps = ScatterFromRoot(scatter == Scatter::kHalving ? Algorithm::kRdh : Algorithm::kMesh,
                            input.set, input.links, layout, whole);
    if (whole) return Finish(input, algorithm, std::move(steps));
  }
  for (const Phase phase : collective::PhasesOf(input.request.operation)) {
    std::ranges::move(Steps(algorithm, phase, input.set, input.links, layout),
                      std::back_inserter(steps));
  }
  return Finish(input, algorithm, std::move(steps));
}

// Plans one phase after the other, each piece along a tree of its own, on any set that hangs
// together. kFailedPrecondition when the links that are fast enough do not join the chips.
absl::StatusOr<Plan> PlanTrees(const PlanInput& input) {
  if (input.set.size() == 1) return Finish(input, Algorithm::kTree, {});
  const collective::DomainLinks links = input.rates();
  const auto trees =
      collective::FastestTrees({.phases = collective::PhasesOf(input.request.operation),
                                .bytes = input.request.bytes * input.options.copies,
                                .banks = input.banks()},
                               input.set.chips(), links, links.costs());
  if (!trees) {
    return FailedPrecondition("tree needs chips that are joined by links of their own; {} are not",
                              input.set.size());
  }
  const Layout layout = LayoutOf(input);
  std::vector<Step> steps;
  if (input.request.operation == Operation::kBroadcast) {
    steps = ScatterFromRoot(Algorithm::kTree, input.set, input.links, layout, /*whole=*/false);
  }
  for (const auto& [phase, of_phase] : trees->phases) {
    std::ranges::move(TreeSteps(phase, input.set, of_phase, layout), std::back_inserter(steps));
  }
  return Finish(input, Algorithm::kTree, std::move(steps));
}

absl::StatusOr<Plan> PlanAlgorithm(const PlanInput& input, Algorithm algorithm) {
  if (algorithm == Algorithm::kTree) return PlanTrees(input);
  TAHOMA_ASSIGN_OR_RETURN(Plan best, PlanSteps(input, algorithm));
  if (input.request.operation != Operation::kBroadcast) return best;
  const auto consider = [&](Scatter scatter) {
    auto plan = PlanSteps(input, algorithm, scatter);
    if (plan.ok() && plan->times.end < best.times.end) best = *std::move(plan);
  };
  if (algorithm == Algorithm::kMesh) consider(Scatter::kWhole);
  if (input.set.box() != nullptr) consider(Scatter::kHalving);
  return best;
}

// OK if the algorithm can be asked for.
absl::Status CheckAlgorithm(const PlanInput& input, Algorithm algorithm) {
  const std::string_view name = Name(algorithm);
  const Operation operation = input.request.operation;
  if (algorithm == Algorithm::kHier) {
    return InvalidArgument("hier needs chips of several domains; here is one torus");
  }
  if (IsExchange(operation) && algorithm != Algorithm::kMesh) {
    return InvalidArgument("{} is no algorithm of {}; expected mesh", name, Name(operation));
  }
  if (algorithm == Algorithm::kRdh && input.set.box() == nullptr) {
    return InvalidArgument("rdh needs a box with sides 1, 2 and 4; {} chips here are none",
                           input.set.size());
  }
  if (algorithm == Algorithm::kKangaRing) {
    for (const Member& member : input.members) {
      // These are chips with logical cores of two physical ones or of one.
      if (member.ranks == input.members[0].ranks && (member.ranks == 4 || member.ranks == 8))
        continue;
      return InvalidArgument(
          "kangaring needs all ranks of each chip, 4 or 8; chip {} has {}, chip {} {}",
          input.members[0].chip.value(), input.members[0].ranks, member.chip.value(), member.ranks);
    }
  }
  return absl::OkStatus();
}

// Returns Neuron's algorithms that these chips allow; around damage, and where chips form no box,
// trees, too.
std::vector<Algorithm> OfferedTo(const PlanInput& input) {
  std::vector<Algorithm> offered;
  for (const Algorithm algorithm : kAllAlgorithms) {
    if (algorithm == Algorithm::kTree && input.regular()) continue;
    if (CheckAlgorithm(input, algorithm).ok()) offered.push_back(algorithm);
  }
  return offered;
}

// The closed form of the input's algorithms (lib/collective/closed_form.h).
class InputForm {
 public:
  // `input` must outlive it; ranks must be equal.
  explicit InputForm(const PlanInput& input)
      : input_(input),
        links_(input.rates()),
        loads_(collective::LoadsOfBox(input.set.mask(), links_)) {
    if (loads_ != nullptr) return;  // of a healthy box
    own_.emplace(input.set.mask(), links_, input.set.chips()[0]);
    loads_ = &*own_;
  }

  // Returns VirtualDuration::max() when the chips do not allow the algorithm.
  VirtualDuration Time(Algorithm algorithm, Phase phase) const {
    return collective::PhaseTime(algorithm, phase,
                                 {.operation = input_.request.operation,
                                  .bytes = input_.request.bytes,
                                  .ranks = input_.ranks(),
                                  .banks = input_.banks(),
                                  .element_bytes = Size(input_.request.type)},
                                 *loads_, links_.costs());
  }
  // Returns the time of all phases of the operation.
  VirtualDuration Time(Algorithm algorithm) const {
    VirtualDuration sum(0);
    for (const Phase phase : collective::PhasesOf(input_.request.operation)) {
      const VirtualDuration time = Time(algorithm, phase);
      if (time == VirtualDuration::max()) return time;
      sum += time;
    }
    return sum;
  }

 private:
  const PlanInput& input_;
  const collective::DomainLinks links_;
  const collective::SetLoads* loads_;
  std::optional<collective::SetLoads> own_;
};

// Planning twice takes long: less than a hundredth of the time is not worth it.
bool IsWorthwhile(VirtualDuration time, VirtualDuration other) {
  return time < other - other / 128;
}

// Whether several chips get blocks of one size.
bool HasEqualBlocks(const PlanInput& input) {
  return input.set.size() > 1 && input.request.operation != Operation::kBroadcast &&
         input.HasEqualRanks();
}

// Returns a time that an all-reduce takes at least: on regular sets that of the fastest algorithm
// in each phase, elsewhere a bound.
VirtualDuration LeastTimeOfPhases(const PlanInput& input) {
  if (!HasEqualBlocks(input)) return VirtualDuration(0);
  std::optional<InputForm> form;
  if (input.regular()) form.emplace(input);
  VirtualDuration sum(0);
  for (const Phase phase : collective::PhasesOf(input.request.operation)) {
    VirtualDuration least = VirtualDuration::max();
    if (form) {
      for (const Algorithm algorithm : OfferedTo(input)) {
        least = std::min(least, form->Time(algorithm, phase));
      }
    } else {
      least =
          LowerBound(collective::OperationOf(phase), input.set, input.request.bytes, input.links);
      if (least == VirtualDuration::max()) return least;
      least += input.links.timing().step;
    }
    sum += least;
  }
  return sum;
}

// Whether the algorithm is clearly slower than so long: that spares its messages, of which a mesh
// on many chips has thousands.
bool IsTooSlow(const PlanInput& input, const InputForm& form, Algorithm algorithm,
               VirtualDuration time) {
  // Rings are not looked for where the starts of their steps take too long.
  const auto steps = static_cast<VirtualDuration::rep>(
      (input.set.size() - 1) * collective::PhasesOf(input.request.operation).size());
  const bool goes_round = algorithm == Algorithm::kRing || algorithm == Algorithm::kKangaRing;
  if (goes_round && input.links.timing().step * steps > time) return true;
  const VirtualDuration estimate = form.Time(algorithm);
  return estimate - estimate / 32 > time;
}

// Times every algorithm that may be the fastest.
absl::StatusOr<Plan> FastestOfTimed(const PlanInput& input) {
  std::vector<Algorithm> offered = OfferedTo(input);
  // Trees are the fastest more often than not, and plan as fast as any.
  std::stable_partition(offered.begin(), offered.end(),
                        [](Algorithm one) { return one == Algorithm::kTree; });
  std::optional<InputForm> form;
  if (HasEqualBlocks(input)) form.emplace(input);
  std::optional<Plan> best;
  absl::Status failed;
  for (const Algorithm algorithm : offered) {
    if (best && form && IsTooSlow(input, *form, algorithm, best->times.end - best->times.start)) {
      continue;
    }
    auto plan = PlanAlgorithm(input, algorithm);
    if (!plan.ok()) {
      // Any set is served by a mesh, if by anything.
      if (algorithm == Algorithm::kMesh) failed = plan.status();
    } else if (!best || plan->times.end < best->times.end ||
               (best->algorithm == Algorithm::kTree && plan->times.end == best->times.end)) {
      best = *std::move(plan);
    }
  }
  if (!best) return failed;
  return *std::move(best);
}

// Plans by the algorithm that the closed form has as the fastest; the first of those that are equal
// but for a thousandth, about as much as rounding to elements makes.
absl::StatusOr<Plan> FastestOfOne(const PlanInput& input) {
  if (!input.regular() || input.request.operation == Operation::kBroadcast) {
    return FastestOfTimed(input);
  }
  const InputForm form(input);
  Algorithm fastest = Algorithm::kMesh;
  VirtualDuration least = form.Time(fastest);
  for (const Algorithm algorithm : OfferedTo(input)) {
    const VirtualDuration time = form.Time(algorithm);
    if (time >= least - least / 1000) continue;
    fastest = algorithm;
    least = time;
  }
  return PlanAlgorithm(input, fastest);
}

// A reduce-scatter and then an all-gather, each by its fastest algorithm. The plan has the name of
// the second.
absl::StatusOr<Plan> FastestOfEachPhase(const PlanInput& input) {
  Request request = input.request;
  const PlanInput phase{request, input.members, input.set, input.links, input.options};
  request.operation = Operation::kReduceScatter;
  TAHOMA_ASSIGN_OR_RETURN(Plan plan, FastestOfOne(phase));
  request.operation = Operation::kAllGather;
  TAHOMA_ASSIGN_OR_RETURN(Plan gather, FastestOfOne(phase));
  plan.algorithm = gather.algorithm;
  Schedule& all = plan.schedule;
  const VirtualDuration between = all.after + gather.schedule.before;
  all.after = gather.schedule.after;
  (gather.schedule.work.empty() ? all.after : gather.schedule.work.front().start) += between;
  std::ranges::move(gather.schedule.steps, std::back_inserter(all.steps));
  std::ranges::move(gather.schedule.work, std::back_inserter(all.work));
  return Timed(std::move(plan), input.links);
}

absl::StatusOr<Plan> FastestOf(const PlanInput& input) {
  TAHOMA_ASSIGN_OR_RETURN(Plan best, FastestOfOne(input));
  if (input.request.operation != Operation::kAllReduce || input.set.size() == 1) return best;
  if (!IsWorthwhile(LeastTimeOfPhases(input), best.times.end.time_since_epoch())) return best;
  TAHOMA_ASSIGN_OR_RETURN(Plan phases, FastestOfEachPhase(input));
  return IsWorthwhile(phases.times.end.time_since_epoch(), best.times.end.time_since_epoch())
             ? std::move(phases)
             : std::move(best);
}

// Moves buffers without combining them, in one step of messages, each whole on one route.
absl::StatusOr<Plan> PlanExchange(const PlanInput& input) {
  TAHOMA_ASSIGN_OR_RETURN(Exchange exchange,
                          ExchangeOf(input.request, input.members, input.set, input.links));
  Plan plan{.algorithm = Algorithm::kMesh, .schedule = {}, .times = {}};
  plan.schedule.through = input.set.through();
  // Ranks on one chip copy beside the messages.
  const StepWork work =
      WorkOf(exchange.step, {}, input.members, input.options.costs, input.links.timing());
  plan.schedule.Add(std::move(exchange.step), work);
  plan.sources = std::move(exchange.sources);
  return Timed(std::move(plan), input.links);
}

}  // namespace

ChipSet SetOf(const std::vector<Member>& members, const TorusLinks& links) {
  std::vector<torus::ChipIndex> chips;
  for (const Member& member : members) chips.push_back(member.chip);
  return {links, std::move(chips)};
}

absl::StatusOr<Plan> PlanWith(Algorithm algorithm, const Request& request,
                              const std::vector<Member>& members, const TorusLinks& links,
                              const PlanOptions& options) {
  TAHOMA_RETURN_IF_ERROR(Check(request, members, links));
  const ChipSet set = SetOf(members, links);
  const PlanInput input{request, members, set, links, options};
  TAHOMA_RETURN_IF_ERROR(CheckAlgorithm(input, algorithm));
  return IsExchange(request.operation) ? PlanExchange(input) : PlanAlgorithm(input, algorithm);
}

absl::StatusOr<Plan> PlanCollective(const Request& request, const std::vector<Member>& members,
                                    const TorusLinks& links, const PlanOptions& options) {
  TAHOMA_RETURN_IF_ERROR(Check(request, members, links));
  const ChipSet set = SetOf(members, links);
  const PlanInput input{request, members, set, links, options};
  return IsExchange(request.operation) ? PlanExchange(input) : FastestOf(input);
}

}  // namespace tahoma::sim

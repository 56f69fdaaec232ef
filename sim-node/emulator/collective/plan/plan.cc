#include "sim-node/emulator/collective/plan/plan.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/cuts.h"
#include "lib/collective/routes.h"
#include "sim-node/emulator/collective/algorithms/moves.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"
#include "sim-node/emulator/collective/plan/estimate.h"
#include "sim-node/emulator/collective/plan/plan_trees.h"
#include "sim-node/emulator/collective/plan/question.h"

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
    seen |= MaskOf(member.chip);
  }
  return absl::OkStatus();
}

// An algorithm with its parameters.
struct Variant {
  Algorithm algorithm = Algorithm::kMesh;
  std::vector<Channel> channels = {};  // of rdh
  bool whole = false;                  // a broadcast's root sends everything to all
  bool halving = false;                // or scatters it by halving, not to each chip directly
};

absl::StatusOr<Plan> PlanVariant(const Question& asked, const Variant& variant) {
  const Layout layout = LayoutOf(asked);
  const torus::Shape& torus = asked.links.torus();
  std::vector<Step> steps;
  if (asked.set.size() == 1) return Finish(asked, variant.algorithm, std::move(steps));
  if (asked.request.operation == Operation::kBroadcast) {
    const Algorithm scatter = variant.halving ? Algorithm::kRdh : Algorithm::kMesh;
    steps = ScatterFromRoot(scatter, asked.set, asked.links, layout, variant.whole);
    if (variant.whole) return Finish(asked, variant.algorithm, std::move(steps));
  }
  for (const Phase phase : PhasesOf(asked.request.operation)) {
    std::ranges::move(variant.algorithm == Algorithm::kRdh
                          ? HalvingSteps(phase, asked.set, torus, layout, variant.channels)
                          : Steps(variant.algorithm, phase, asked.set, asked.links, layout),
                      std::back_inserter(steps));
  }
  return Finish(asked, variant.algorithm, std::move(steps));
}

std::vector<StepOutline> OutlineOf(const Question& asked, const Variant& variant) {
  const std::uint64_t bytes = asked.request.bytes * asked.options.copies;
  switch (variant.algorithm) {
    case Algorithm::kMesh:
      return MeshOutline(*asked.set.box(), asked.links, bytes);
    case Algorithm::kRdh:
      return HalvingOutline(variant.channels, *asked.set.box(), asked.links, bytes);
    default:
      return RingOutline(asked.set, asked.links, bytes);
  }
}

// Estimates a reduction or a gathering on a regular set.
VirtualDuration Estimate(const Question& asked, const Variant& variant) {
  std::vector<StepOutline> outline = OutlineOf(asked, variant);
  const AllStages stages = StagesOf(asked, variant.algorithm);
  std::vector<PlannedStep> steps;
  for (const Phase phase : PhasesOf(asked.request.operation)) {
    const ChipUse use = asked.UseOf(variant.algorithm, phase);
    const std::uint64_t touches =
        static_cast<std::uint64_t>(use.reads) + static_cast<std::uint64_t>(use.writes);
    if (phase == Phase::kAllGather) std::reverse(outline.begin(), outline.end());
    const std::size_t first = steps.size();
    for (const StepOutline& step : outline) {
      steps.push_back({.outline = step,
                       .work = WorkOf(step.bytes * touches, step.destinations, use,
                                      asked.options.costs, asked.links.timing())});
    }
    if (first > 0) steps[first].work.start += stages.between;
  }
  return stages.before + EstimateTime(steps, /*stripes=*/1, asked.links.timing()) + stages.after;
}

std::vector<Variant> VariantsOf(const Question& asked, Algorithm algorithm) {
  std::vector<Variant> variants = {{.algorithm = algorithm}};
  if (algorithm == Algorithm::kRdh) {
    variants[0].channels = BalancedChannels(*asked.set.box(), asked.links.torus());
  }
  if (asked.request.operation != Operation::kBroadcast) return variants;
  if (algorithm == Algorithm::kMesh) variants.push_back({.algorithm = algorithm, .whole = true});
  if (asked.set.box() != nullptr) {
    variants.push_back(variants[0]);
    variants.back().halving = true;
  }
  return variants;
}

// The variant that the closed forms have as the fastest; the first of those that are equal but for
// a thousandth, about as much as rounding to elements makes.
struct Chosen {
  Variant variant;
  VirtualDuration time = VirtualDuration::max();

  void Consider(const Question& asked, Variant other) {
    const VirtualDuration estimate = Estimate(asked, other);
    if (estimate >= time - time / 1000) return;
    variant = std::move(other);
    time = estimate;
  }
};

absl::StatusOr<Plan> PlanAlgorithm(const Question& asked, Algorithm algorithm) {
  if (algorithm == Algorithm::kTree) return PlanTrees(asked);
  const std::vector<Variant> variants = VariantsOf(asked, algorithm);
  TAHOMA_ASSIGN_OR_RETURN(Plan best, PlanVariant(asked, variants[0]));
  for (std::size_t i = 1; i < variants.size(); ++i) {
    auto plan = PlanVariant(asked, variants[i]);
    if (plan.ok() && plan->times.end < best.times.end) best = *std::move(plan);
  }
  return best;
}

// OK if the algorithm can be asked for.
absl::Status CheckAlgorithm(const Question& asked, Algorithm algorithm) {
  const std::string_view name = Name(algorithm);
  const Operation operation = asked.request.operation;
  if (algorithm == Algorithm::kHier) {
    return InvalidArgument("hier needs chips of several domains; here is one torus");
  }
  if (IsExchange(operation) && algorithm != Algorithm::kMesh) {
    return InvalidArgument("{} is no algorithm of {}; expected mesh", name, Name(operation));
  }
  if (algorithm == Algorithm::kRdh && asked.set.box() == nullptr) {
    return InvalidArgument("rdh needs a box with sides 1, 2 and 4; {} chips here are none",
                           asked.set.size());
  }
  if (algorithm == Algorithm::kKangaRing) {
    for (const Member& member : asked.members) {
      // These are chips with logical cores of two physical ones or of one.
      if (member.ranks == asked.members[0].ranks && (member.ranks == 4 || member.ranks == 8))
        continue;
      return InvalidArgument(
          "kangaring needs all ranks of each chip, 4 or 8; chip {} has {}, chip {} {}",
          asked.members[0].chip.value(), asked.members[0].ranks, member.chip.value(), member.ranks);
    }
  }
  return absl::OkStatus();
}

// Returns Neuron's algorithms that these chips allow; around damage, and where chips form no box,
// trees, too.
std::vector<Algorithm> OfferedTo(const Question& asked) {
  std::vector<Algorithm> offered;
  for (const Algorithm algorithm : kAllAlgorithms) {
    if (algorithm == Algorithm::kTree && asked.regular()) continue;
    if (CheckAlgorithm(asked, algorithm).ok()) offered.push_back(algorithm);
  }
  return offered;
}

// Planning twice takes long: less than a hundredth of the time is not worth it.
bool IsWorthwhile(VirtualDuration time, VirtualDuration other) {
  return time < other - other / 128;
}

// Whether several chips get blocks of one size.
bool HasEqualBlocks(const Question& asked) {
  return asked.set.size() > 1 && asked.request.operation != Operation::kBroadcast &&
         std::ranges::all_of(
             asked.members, [&](const Member& one) { return one.ranks == asked.members[0].ranks; });
}

// Returns a lower bound of the time of phases in which each chip has a block of the same size.
VirtualDuration LeastTimeOfBlocks(const Question& asked) {
  if (!HasEqualBlocks(asked)) return VirtualDuration(0);
  const collective::DomainLinks links = DomainLinksOf(asked.links);
  const torus::ChipMask through = asked.set.through() & links.chips();
  VirtualDuration sum(0);
  for (const Phase phase : PhasesOf(asked.request.operation)) {
    const collective::Cut cut = phase == Phase::kAllGather
                                    ? collective::WorstGatherCut(links, asked.set.mask(), through)
                                    : collective::WorstScatterCut(links, asked.set.mask(), through);
    if (cut.rate == 0) return VirtualDuration::max();
    const std::uint64_t block = asked.request.bytes / asked.set.size();
    sum += asked.links.timing().step + TransferTime(block * cut.blocks, cut.rate);
  }
  return sum;
}

// Returns a lower bound of the time that the algorithm takes, to spare the timing of one that
// cannot be the fastest: a mesh on many chips has thousands of messages.
VirtualDuration LeastTimeOf(const Question& asked, Algorithm algorithm) {
  if (!HasEqualBlocks(asked)) return VirtualDuration(0);
  const std::size_t chips = asked.set.size();
  const LinkTiming& timing = asked.links.timing();
  const collective::DomainLinks links = DomainLinksOf(asked.links);
  const torus::ChipMask through = asked.set.through() & links.chips();
  VirtualDuration step(0);
  std::size_t steps = PhasesOf(asked.request.operation).size();
  if (algorithm == Algorithm::kMesh) {
    collective::MessageLoad load(links, through);
    if (!load.AddAllPairs(asked.set.mask())) return VirtualDuration::max();
    step = load.Time(asked.request.bytes, chips) -
           timing.hop * static_cast<VirtualDuration::rep>(load.longest());
  } else if (algorithm == Algorithm::kRing) {
    steps *= chips - 1;
    const collective::Cut cut = collective::WorstGatherCut(links, asked.set.mask(), through);
    if (cut.rate == 0) return VirtualDuration::max();
    step = TransferTime(asked.request.bytes / chips * cut.blocks / (chips - 1), cut.rate);
  } else if (algorithm == Algorithm::kRdh) {
    return LeastTimeOfBlocks(asked);
  }
  return (timing.step + step) * static_cast<VirtualDuration::rep>(steps);
}

// Times every algorithm that may be the fastest: no closed form holds.
absl::StatusOr<Plan> FastestOfTimed(const Question& asked, std::vector<Algorithm> offered) {
  // Trees are the fastest more often than not, and plan as fast as any.
  std::stable_partition(offered.begin(), offered.end(),
                        [](Algorithm one) { return one == Algorithm::kTree; });
  std::optional<Plan> best;
  absl::Status failed;
  for (const Algorithm algorithm : offered) {
    if (best && LeastTimeOf(asked, algorithm) > best->times.end - best->times.start) continue;
    auto plan = PlanAlgorithm(asked, algorithm);
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

absl::StatusOr<Plan> FastestOfOne(const Question& asked) {
  const std::vector<Algorithm> offered = OfferedTo(asked);
  if (!asked.regular() || asked.request.operation == Operation::kBroadcast) {
    return FastestOfTimed(asked, offered);
  }
  Chosen chosen;
  for (const Algorithm algorithm : offered) {
    for (Variant& variant : VariantsOf(asked, algorithm)) {
      chosen.Consider(asked, std::move(variant));
    }
  }
  return PlanVariant(asked, chosen.variant);
}

// A reduce-scatter and then an all-gather, each by its fastest algorithm. The plan has the name of
// the second.
absl::StatusOr<Plan> FastestOfEachPhase(const Question& asked) {
  Request request = asked.request;
  const Question phase{request, asked.members, asked.set, asked.links, asked.options};
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
  return Timed(std::move(plan), asked.links);
}

absl::StatusOr<Plan> FastestOf(const Question& asked) {
  TAHOMA_ASSIGN_OR_RETURN(Plan best, FastestOfOne(asked));
  if (asked.request.operation != Operation::kAllReduce || asked.set.size() == 1) return best;
  if (!IsWorthwhile(LeastTimeOfBlocks(asked), best.times.end.time_since_epoch())) return best;
  TAHOMA_ASSIGN_OR_RETURN(Plan phases, FastestOfEachPhase(asked));
  return IsWorthwhile(phases.times.end.time_since_epoch(), best.times.end.time_since_epoch())
             ? std::move(phases)
             : std::move(best);
}

// Moves buffers without combining them, in one step of messages, each whole on one route.
absl::StatusOr<Plan> PlanExchange(const Question& asked) {
  TAHOMA_ASSIGN_OR_RETURN(Exchange exchange,
                          ExchangeOf(asked.request, asked.members, asked.set, asked.links));
  Plan plan{.algorithm = Algorithm::kMesh, .schedule = {}, .times = {}};
  plan.schedule.through = asked.set.through();
  // Ranks on one chip copy beside the messages.
  const StepWork work = WorkOf(exchange.step, {}, asked.options.costs, asked.links.timing());
  plan.schedule.Add(std::move(exchange.step), work);
  plan.sources = std::move(exchange.sources);
  return Timed(std::move(plan), asked.links);
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
  const Question asked{request, members, set, links, options};
  TAHOMA_RETURN_IF_ERROR(CheckAlgorithm(asked, algorithm));
  return IsExchange(request.operation) ? PlanExchange(asked) : PlanAlgorithm(asked, algorithm);
}

absl::StatusOr<Plan> PlanCollective(const Request& request, const std::vector<Member>& members,
                                    const TorusLinks& links, const PlanOptions& options) {
  TAHOMA_RETURN_IF_ERROR(Check(request, members, links));
  const ChipSet set = SetOf(members, links);
  const Question asked{request, members, set, links, options};
  return IsExchange(request.operation) ? PlanExchange(asked) : FastestOf(asked);
}

}  // namespace tahoma::sim

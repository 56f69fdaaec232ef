#include "sim-node/emulator/collective/plan/plan.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/cuts.h"
#include "lib/collective/routes.h"
#include "sim-node/emulator/collective/algorithms/bucket.h"
#include "sim-node/emulator/collective/algorithms/moves.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"
#include "sim-node/emulator/collective/plan/estimate.h"
#include "sim-node/emulator/collective/plan/plan_exchange.h"
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
  std::size_t stripes = 1;
  std::vector<Channel> channels = {};  // of rdh
  std::size_t buckets = 1;             // stripes of bucket that follow one another
  bool whole = false;                  // a broadcast's root sends everything to all
};

absl::StatusOr<Plan> PlanVariant(const Question& asked, const Variant& variant) {
  const Layout layout = LayoutOf(asked);
  const torus::Shape& torus = asked.links.torus();
  std::vector<std::vector<Step>> stripes(variant.stripes);
  if (asked.set.size() == 1) return Finish(asked, variant.algorithm, std::move(stripes));
  if (asked.request.operation == Operation::kBroadcast) {
    return Finish(
        asked, variant.algorithm,
        {BroadcastSteps(variant.algorithm, asked.set, asked.links, layout, variant.whole)});
  }
  for (std::size_t index = 0; index < variant.stripes; ++index) {
    const Stripe stripe{.index = index, .count = variant.stripes};
    for (const Phase phase : PhasesOf(asked.request.operation)) {
      std::vector<Step> steps =
          variant.algorithm == Algorithm::kRdh
              ? HalvingSteps(phase, asked.set, torus, layout, variant.channels, stripe)
          : variant.algorithm == Algorithm::kBucket
              ? BucketSteps(phase, asked.set, torus, layout, variant.buckets)
              : Steps(variant.algorithm, phase, asked.set, asked.links, layout, stripe);
      std::move(steps.begin(), steps.end(), std::back_inserter(stripes[index]));
    }
  }
  return Finish(asked, variant.algorithm, std::move(stripes));
}

std::vector<StepOutline> OutlineOf(const Question& asked, const Variant& variant) {
  const std::uint64_t bytes = asked.request.bytes * asked.options.copies;
  switch (variant.algorithm) {
    case Algorithm::kMesh:
      return MeshOutline(*asked.set.box(), asked.links, bytes);
    case Algorithm::kRdh:
      return HalvingOutline(variant.channels, *asked.set.box(), asked.links, bytes);
    case Algorithm::kBucket:
      return BucketOutline(asked.links, bytes, variant.buckets);
    default:
      return RingOutline(asked.set, asked.links, bytes);
  }
}

// Estimates a reduction or a gathering on a regular set.
VirtualDuration Estimate(const Question& asked, const Variant& variant) {
  std::vector<StepOutline> outline = OutlineOf(asked, variant);
  const AllStages stages = StagesOf(asked, variant.algorithm);
  const VirtualDuration kept =
      KeptBlockTime(asked) / static_cast<VirtualDuration::rep>(variant.stripes);
  std::vector<PlannedStep> steps;
  for (const Phase phase : PhasesOf(asked.request.operation)) {
    const ChipUse use = asked.UseOf(variant.algorithm, phase);
    const std::uint64_t touches =
        static_cast<std::uint64_t>(use.reads) + static_cast<std::uint64_t>(use.writes);
    if (phase == Phase::kAllGather) std::reverse(outline.begin(), outline.end());
    const std::size_t first = steps.size();
    for (const StepOutline& step : outline) {
      const std::uint64_t touched = step.bytes / variant.stripes * touches;
      steps.push_back({.outline = step,
                       .work = WorkOf(touched, step.destinations, use, asked.options.costs,
                                      asked.links.timing())});
    }
    if (first > 0) steps[first].work.start += stages.between;
    std::vector<StepWork*> of_phase;
    for (std::size_t i = first; i < steps.size(); ++i) of_phase.push_back(&steps[i].work);
    SpreadOver(of_phase, kept);
  }
  return stages.before + EstimateTime(steps, variant.stripes, asked.links.timing()) + stages.after;
}

std::vector<Variant> VariantsOf(const Question& asked, Algorithm algorithm) {
  const torus::Shape& torus = asked.links.torus();
  const torus::Box* const box = asked.set.box();
  std::vector<Variant> variants = {{.algorithm = algorithm}};
  if (algorithm == Algorithm::kBucket) {
    for (const std::size_t buckets : {std::size_t{8}, std::size_t{32}}) {
      variants.push_back({.algorithm = algorithm, .buckets = buckets});
    }
    return variants;
  }
  if (algorithm == Algorithm::kRdh) {
    const bool aws = asked.options.mode == PlanMode::kAws;
    variants[0].channels = aws ? SlowLastChannels(*box, torus) : BalancedChannels(*box, torus);
    std::vector<Channel> staggered = StaggeredChannels(*box, torus);
    if (!aws && !staggered.empty()) {
      variants.push_back({.algorithm = algorithm, .channels = std::move(staggered)});
    }
  }
  if (algorithm == Algorithm::kMesh && asked.request.operation == Operation::kBroadcast) {
    variants.push_back({.algorithm = algorithm, .whole = true});
  }
  // A single step has nothing to overlap with, and Neuron's algorithms are taken as described.
  const bool striped = algorithm != Algorithm::kMesh && asked.options.mode == PlanMode::kBest &&
                       asked.request.operation != Operation::kBroadcast;
  if (!striped || asked.options.stripes == 1) return variants;
  const bool both = asked.options.stripes == 0;
  if (both && !asked.regular()) return variants;
  const std::size_t single = variants.size();
  for (std::size_t i = 0; i < single; ++i) {
    variants.push_back(variants[i]);
    variants.back().stripes = kMaxStripes;
  }
  if (!both)
    variants.erase(variants.begin(), variants.begin() + static_cast<std::ptrdiff_t>(single));
  return variants;
}

// The variant that the closed forms have as the fastest; the first of those that are equal but for
// a thousandth, about as much as rounding to elements makes.
struct Chosen {
  Variant variant;
  VirtualDuration time = VirtualDuration::max();

  void Consider(const Question& asked, Variant other) {
    const VirtualDuration estimate = Estimate(asked, other);
    // Twice the messages must be worth it.
    const VirtualDuration gain = other.stripes > variant.stripes
                                     ? std::min<VirtualDuration>(time / 100, Microseconds(1))
                                     : time / 1000;
    if (estimate >= time - gain) return;
    variant = std::move(other);
    time = estimate;
  }
};

absl::StatusOr<Plan> PlanAlgorithm(const Question& asked, Algorithm algorithm) {
  if (algorithm == Algorithm::kTree) return PlanTrees(asked);
  std::vector<Variant> variants = VariantsOf(asked, algorithm);
  if (asked.regular() && asked.request.operation != Operation::kBroadcast) {
    Chosen chosen;
    for (Variant& variant : variants) chosen.Consider(asked, std::move(variant));
    return PlanVariant(asked, chosen.variant);
  }
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
  const bool of_neuron = algorithm != Algorithm::kTree && algorithm != Algorithm::kBucket;
  if (asked.options.mode == PlanMode::kAws && !of_neuron) {
    return InvalidArgument("{} is no algorithm of Neuron; expected mesh, rdh, kangaring or ring",
                           name);
  }
  if (IsExchange(operation) && algorithm != Algorithm::kMesh) {
    return InvalidArgument("{} is no algorithm of {}; expected mesh", name, Name(operation));
  }
  if (operation == Operation::kBroadcast && algorithm == Algorithm::kBucket) {
    return InvalidArgument(
        "{} is no algorithm of broadcast; expected mesh, rdh, ring, kangaring or tree", name);
  }
  if (algorithm == Algorithm::kRdh && asked.set.box() == nullptr) {
    return InvalidArgument("rdh needs a box with sides 1, 2 and 4; {} chips here are none",
                           asked.set.size());
  }
  if (algorithm == Algorithm::kBucket && (asked.set.box() == nullptr || asked.set.size() != 64)) {
    return InvalidArgument("bucket needs the 64 chips of an UltraServer; here are {}",
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

// Neuron's algorithms only, or all that are ever the fastest: with the ranks of a chip as one,
// kangaring is never faster than ring, nor bucket than rdh.
std::vector<Algorithm> OfferedTo(const Question& asked) {
  std::vector<Algorithm> offered;
  for (const Algorithm algorithm : kAllAlgorithms) {
    if (asked.options.mode == PlanMode::kBest &&
        (algorithm == Algorithm::kKangaRing || algorithm == Algorithm::kBucket)) {
      continue;
    }
    if (CheckAlgorithm(asked, algorithm).ok()) offered.push_back(algorithm);
  }
  return offered;
}

// Trees take long to plan: less than a hundredth of the time is not worth it.
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
  bool trees = false;
  for (const Algorithm algorithm : offered) {
    trees = trees || algorithm == Algorithm::kTree;
    if (algorithm == Algorithm::kTree) continue;
    for (Variant& variant : VariantsOf(asked, algorithm))
      chosen.Consider(asked, std::move(variant));
  }
  TAHOMA_ASSIGN_OR_RETURN(Plan best, PlanVariant(asked, chosen.variant));
  if (!trees || !IsWorthwhile(FastestTrees(asked), best.times.end - best.times.start)) return best;
  TAHOMA_ASSIGN_OR_RETURN(Plan plan, PlanTrees(asked));
  return plan.times.end < best.times.end ? std::move(plan) : std::move(best);
}

// The largest irregular set whose all-reduce is planned in two phases, too: trees of more chips
// take long to plan and are faster than two phases.
constexpr std::size_t kTwoPhasesMost = 16;

// Whether an all-reduce may be faster if each of its phases has an algorithm of its own.
bool MayTakeTwoAlgorithms(const Question& asked) {
  if (asked.request.operation != Operation::kAllReduce || asked.set.size() == 1) return false;
  if (asked.options.stripes > 1) return false;
  if (asked.options.mode == PlanMode::kAws) return true;
  return !asked.regular() && asked.set.size() <= kTwoPhasesMost;
}

// A reduce-scatter and then an all-gather, each by its fastest algorithm. The plan has the name of
// the second.
absl::StatusOr<Plan> FastestOfEachPhase(const Question& asked) {
  PlanOptions options = asked.options;
  options.stripes = 1;
  Request request = asked.request;
  const Question phase{request, asked.members, asked.set, asked.links, options};
  request.operation = Operation::kReduceScatter;
  TAHOMA_ASSIGN_OR_RETURN(Plan plan, FastestOfOne(phase));
  request.operation = Operation::kAllGather;
  TAHOMA_ASSIGN_OR_RETURN(Plan gather, FastestOfOne(phase));
  // Else a step could send what the steps before it have not brought yet.
  TAHOMA_CHECK(plan.schedule.stripes == 1 && gather.schedule.stripes == 1);
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
  if (!MayTakeTwoAlgorithms(asked)) return best;
  if (!IsWorthwhile(LeastTimeOfBlocks(asked), best.times.end.time_since_epoch())) return best;
  TAHOMA_ASSIGN_OR_RETURN(Plan phases, FastestOfEachPhase(asked));
  return IsWorthwhile(phases.times.end.time_since_epoch(), best.times.end.time_since_epoch())
             ? std::move(phases)
             : std::move(best);
}

absl::Status CheckOptions(const PlanOptions& options) {
  if (options.stripes >= 0 && options.stripes <= kMaxStripes) return absl::OkStatus();
  return InvalidArgument("{} slices; expected 0 to {}", options.stripes, kMaxStripes);
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
  TAHOMA_RETURN_IF_ERROR(CheckOptions(options));
  const ChipSet set = SetOf(members, links);
  const Question asked{request, members, set, links, options};
  TAHOMA_RETURN_IF_ERROR(CheckAlgorithm(asked, algorithm));
  return IsExchange(request.operation) ? PlanExchange(asked) : PlanAlgorithm(asked, algorithm);
}

absl::StatusOr<Plan> PlanCollective(const Request& request, const std::vector<Member>& members,
                                    const TorusLinks& links, const PlanOptions& options) {
  TAHOMA_RETURN_IF_ERROR(Check(request, members, links));
  TAHOMA_RETURN_IF_ERROR(CheckOptions(options));
  const ChipSet set = SetOf(members, links);
  const Question asked{request, members, set, links, options};
  return IsExchange(request.operation) ? PlanExchange(asked) : FastestOf(asked);
}

}  // namespace tahoma::sim

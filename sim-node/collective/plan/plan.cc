#include "sim-node/collective/plan/plan.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/cuts.h"
#include "lib/collective/forms.h"
#include "lib/collective/route_search.h"
#include "sim-node/collective/algorithms/bucket.h"
#include "sim-node/collective/algorithms/moves.h"
#include "sim-node/collective/algorithms/trees.h"
#include "sim-node/collective/plan/bound.h"
#include "sim-node/collective/plan/chip_cost.h"
#include "sim-node/collective/plan/estimate.h"

namespace tahoma::sim {
namespace {

using collective::Cut;
using torus::ChipIndex;
using torus::ChipMask;

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

Layout LayoutOf(const Request& request, const std::vector<Member>& members) {
  std::vector<int> weights;
  for (const Member& member : members) weights.push_back(member.ranks);
  Layout layout = Layout::Weighted(weights, request.bytes / Size(request.type), Size(request.type));
  layout.fixed = request.operation != Operation::kAllReduce;
  return layout;
}

// The phases that the operation needs, in order; a broadcast is made as an all-gather is.
std::vector<Phase> PhasesOf(Operation operation) {
  std::vector<Phase> phases;
  if (Combines(operation)) phases.push_back(Phase::kReduceScatter);
  if (operation != Operation::kReduceScatter) phases.push_back(Phase::kAllGather);
  return phases;
}

// An algorithm with its parameters.
struct Variant {
  Algorithm algorithm = Algorithm::kMesh;
  std::size_t stripes = 1;
  std::vector<Channel> channels = {};  // of rdh
  std::size_t buckets = 1;             // stripes of bucket that follow one another
};

// The facts that all plans of one request share.
struct Question {
  const Request& request;
  const std::vector<Member>& members;
  const ChipSet& set;
  const TorusLinks& links;
  const PlanOptions& options;

  // The fullest chip decides.
  int ranks() const {
    int most = 1;
    for (const Member& member : members) most = std::max(most, member.ranks);
    return most;
  }
  // Closed forms hold.
  bool regular() const {
    return set.box() != nullptr && set.size() > 1 && !links.IsDamaged(set.through()) &&
           std::all_of(members.begin(), members.end(),
                       [&](const Member& member) { return member.ranks == members[0].ranks; });
  }
  ChipUse UseOf(Algorithm algorithm, Phase phase) const {
    return options.mode == PlanMode::kAws ? NeuronUse(algorithm, phase, ranks())
                                          : MergedUse(phase, ranks());
  }
  ChipStages StagesOf(Algorithm algorithm, Phase phase) const {
    if (options.mode == PlanMode::kAws) {
      return NeuronStages(algorithm, phase, request.bytes, set.size(), ranks(), options.costs,
                          links.timing());
    }
    if (set.size() > 1 || ranks() == 1) return {};
    const auto buffers = static_cast<std::uint64_t>(ranks()) + 1;
    const VirtualDuration stage = StageTime(request.bytes * buffers, options.costs, links.timing());
    return phase == Phase::kReduceScatter ? ChipStages{.before = stage, .after = {}}
                                          : ChipStages{.before = {}, .after = stage};
  }
};

// The stages of a whole collective: before, between its phases, after.
struct AllStages {
  VirtualDuration before{};
  VirtualDuration between{};
  VirtualDuration after{};
};

AllStages StagesOf(const Question& asked, Algorithm algorithm) {
  AllStages all;
  const std::vector<Phase> phases = PhasesOf(asked.request.operation);
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const ChipStages stages = asked.StagesOf(algorithm, phases[i]);
    (i == 0 ? all.before : all.between) += stages.before;
    (i + 1 == phases.size() ? all.after : all.between) += stages.after;
  }
  return all;
}

Phase PhaseOf(const Step& step) {
  const bool reduces = !step.empty() && step[0].action == Action::kReduce;
  return reduces ? Phase::kReduceScatter : Phase::kAllGather;
}

absl::StatusOr<Plan> Timed(Plan plan, const TorusLinks& links) {
  TAHOMA_ASSIGN_OR_RETURN(auto times, TimeSchedules({&plan.schedule}, links));
  plan.times = std::move(times[0]);
  return plan;
}

// Returns the steps of all stripes, interleaved; a step that is empty in all of them is left out.
std::vector<Step> Interleaved(std::vector<std::vector<Step>> stripes) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < stripes[0].size(); ++i) {
    const bool empty = std::all_of(stripes.begin(), stripes.end(),
                                   [i](const auto& stripe) { return stripe[i].empty(); });
    for (auto& stripe : stripes) {
      if (!empty) steps.push_back(std::move(stripe[i]));
    }
  }
  return steps;
}

absl::StatusOr<Plan> Finish(const Question& asked, Algorithm algorithm,
                            std::vector<std::vector<Step>> stripes) {
  Plan plan{.algorithm = algorithm, .schedule = {}, .times = {}};
  plan.schedule.stripes = stripes.size();
  plan.schedule.steps = Interleaved(std::move(stripes));
  plan.schedule.through = asked.set.through();
  const AllStages stages = StagesOf(asked, algorithm);
  plan.schedule.before = stages.before;
  plan.schedule.after = stages.after;
  bool reduced = false;
  std::size_t waiting = plan.schedule.stripes;  // of which the first copying step is still to come
  for (const Step& step : plan.schedule.steps) {
    const Phase phase = PhaseOf(step);
    StepWork work =
        WorkOf(step, asked.UseOf(algorithm, phase), asked.options.costs, asked.links.timing());
    reduced = reduced || phase == Phase::kReduceScatter;
    if (reduced && phase == Phase::kAllGather && waiting > 0) {
      work.start += stages.between;
      --waiting;
    }
    plan.schedule.work.push_back(work);
  }
  return Timed(std::move(plan), asked.links);
}

// Returns the worst cut of an exchange of one block per pair of ranks. Route search stops there: no
// set of routes is faster, or needs to be.
Cut GoalOf(const Question& asked, const Exchange& exchange, const collective::DomainLinks& links) {
  const ChipMask through = asked.set.through() & links.chips();
  if (asked.request.operation == Operation::kAllToAll) {
    Cut goal = collective::WorstExchangeCut(links, asked.set.mask(), through);
    const auto fewest = static_cast<std::uint64_t>(
        std::ranges::min_element(asked.members, {}, &Member::ranks)->ranks);
    goal.blocks *= fewest * fewest;
    return goal;
  }
  std::vector<std::uint8_t> order;
  for (const ChipIndex chip : exchange.order) {
    order.push_back(static_cast<std::uint8_t>(chip.value()));
  }
  Cut goal = collective::ShiftGoal(links, order, through);
  if (asked.request.operation == Operation::kPermute) {
    goal.blocks *= static_cast<std::uint64_t>(asked.ranks());
  }
  return goal;
}

// Ranks on one chip copy beside the messages. Each part has a command of its own.
StepWork WorkInParts(const Question& asked, const Exchange& exchange, std::uint32_t parts) {
  return WorkOf(exchange.step, {.commands = static_cast<int>(parts)}, asked.options.costs,
                asked.links.timing());
}

Plan PlanOfOneStep(const Question& asked, const Exchange& exchange, std::uint32_t parts) {
  Plan plan{.algorithm = Algorithm::kMesh, .schedule = {}, .times = {}};
  plan.schedule.through = asked.set.through();
  plan.schedule.work.push_back(WorkInParts(asked, exchange, parts));
  plan.sources = exchange.sources;
  return plan;
}

// Every message whole, on one route.
absl::StatusOr<Plan> DirectPlan(const Question& asked, const Exchange& exchange) {
  Plan plan = PlanOfOneStep(asked, exchange, 1);
  plan.schedule.steps.push_back(exchange.step);
  return Timed(std::move(plan), asked.links);
}

// An exchange whose messages go whole on one route each, or in parts on routes of their own.
class RoutedExchange {
 public:
  RoutedExchange(const Question& asked, const Exchange& exchange)
      : asked_(asked),
        exchange_(exchange),
        block_(exchange.step[0].bytes),
        through_(asked.set.through()),
        links_(DomainLinksOf(asked.links, asked.options.costs)),
        goal_(GoalOf(asked, exchange, links_)),
        demands_(DemandsOf(exchange.step)) {}

  absl::StatusOr<Plan> Fastest() const {
    TAHOMA_ASSIGN_OR_RETURN(const VirtualDuration direct, DirectTime());
    if (collective::IsClose(direct, LeastTime(1))) return DirectPlan(asked_, exchange_);
    const auto [routes, time] = BestRoutes();
    TAHOMA_ASSIGN_OR_RETURN(Plan split, Timed(Split(routes), asked_.links));
    if (collective::IsClose(time, direct)) {  // the times of a formula say no more
      TAHOMA_ASSIGN_OR_RETURN(Plan whole, DirectPlan(asked_, exchange_));
      if (whole.times.end <= split.times.end) return whole;
    }
    return split;
  }

 private:
  // The time of messages on their routes, by the load of the fullest link.
  absl::StatusOr<VirtualDuration> DirectTime() const {
    std::vector<std::vector<collective::Arc>> routes;
    for (const collective::Demand& demand : demands_) {
      TAHOMA_ASSIGN_OR_RETURN(
          const std::vector<LinkId> route,
          asked_.links.FindRoute(ChipIndex(demand.from), ChipIndex(demand.to), through_));
      routes.emplace_back(route.begin(), route.end());
    }
    return TimeOf(collective::Routes(links_, demands_, 1, std::move(routes)));
  }

  std::pair<collective::Routes, VirtualDuration> BestRoutes() const {
    std::optional<collective::Routes> routes;
    std::optional<collective::Routes> best;
    VirtualDuration least = VirtualDuration::max();
    for (const std::uint32_t parts : collective::kPartsOfMessage) {
      const bool many = demands_.size() * parts > collective::kPartsMax ||
                        parts > block_ / Size(asked_.request.type);
      if (parts > 1 && (many || least <= LeastTime(parts))) break;
      routes = collective::FindRoutes(
          links_, through_ & links_.chips(), demands_,
          {.parts = parts, .goal = goal_, .begin = routes.has_value() ? &*routes : nullptr});
      TAHOMA_CHECK(routes.has_value());  // as there are routes
      const VirtualDuration time = TimeOf(*routes);
      if (time < least) {
        least = time;
        best = routes;
      }
      if (collective::IsClose(least, LeastTime(parts))) break;
    }
    return {*std::move(best), least};
  }

  Plan Split(const collective::Routes& routes) const {
    Plan plan = PlanOfOneStep(asked_, exchange_, routes.parts());
    plan.schedule.steps.push_back(SplitOver(exchange_.step, demands_, routes,
                                            Size(asked_.request.type), plan.schedule.routes));
    return plan;
  }

  // Returns the time when the fullest link carries that load.
  VirtualDuration TimeFor(const Cut& fullest, std::uint32_t parts, std::size_t hops) const {
    const LinkTiming& timing = asked_.links.timing();
    const StepWork work = WorkInParts(asked_, exchange_, parts);
    const VirtualDuration flight =
        collective::TimeAtMost(static_cast<Wide>(block_) * fullest.blocks, 1, fullest.rate) +
        timing.hop * static_cast<VirtualDuration::rep>(hops);
    return timing.step + work.start + std::max(flight, work.memory);
  }
  VirtualDuration LeastTime(std::uint32_t parts) const { return TimeFor(goal_, parts, 1); }
  VirtualDuration TimeOf(const collective::Routes& routes) const {
    Cut fullest = routes.fullest();
    fullest.rate *= routes.parts();
    return TimeFor(fullest, routes.parts(), routes.longest());
  }

  const Question& asked_;
  const Exchange& exchange_;
  const std::uint64_t block_;
  const ChipMask through_;
  const collective::DomainLinks links_;
  const Cut goal_;
  const std::vector<collective::Demand> demands_;
};

absl::StatusOr<Plan> PlanExchange(const Question& asked) {
  TAHOMA_ASSIGN_OR_RETURN(const Exchange exchange,
                          ExchangeOf(asked.request, asked.members, asked.set, asked.links));
  const bool healthy_box =
      asked.set.box() != nullptr && !asked.links.IsDamaged(asked.set.through());
  // Listed blocks differ in size: equal parts of them would not end together.
  const bool direct = healthy_box || asked.set.size() == 1 || asked.options.one_route ||
                      asked.request.blocks != nullptr || asked.options.mode == PlanMode::kAws;
  return direct ? DirectPlan(asked, exchange) : RoutedExchange(asked, exchange).Fastest();
}

// The fastest cut into parts.
absl::StatusOr<Plan> PlanTrees(const Question& asked) {
  const ChipSet& set = asked.set;
  const Layout layout = LayoutOf(asked.request, asked.members);
  std::optional<Plan> best;
  for (const std::uint64_t parts : collective::kTreeParts) {
    if (best && set.size() * parts > collective::kTreePiecesMax) break;
    std::vector<Step> all;
    for (const Phase phase : PhasesOf(asked.request.operation)) {
      auto steps = asked.request.operation == Operation::kBroadcast
                       ? TreeBroadcastSteps(set, asked.links, layout, parts)
                       : TreeSteps(phase, set, asked.links, layout, parts);
      if (!steps) {
        return FailedPrecondition(
            "tree needs chips that are joined by links of their own; {} are not", set.size());
      }
      std::move(steps->begin(), steps->end(), std::back_inserter(all));
    }
    TAHOMA_ASSIGN_OR_RETURN(Plan plan, Finish(asked, Algorithm::kTree, {std::move(all)}));
    if (!best || plan.times.end < best->times.end) best = std::move(plan);
  }
  return *std::move(best);
}

absl::StatusOr<Plan> PlanVariant(const Question& asked, const Variant& variant) {
  const Layout layout = LayoutOf(asked.request, asked.members);
  const torus::Shape& torus = asked.links.torus();
  std::vector<std::vector<Step>> stripes(variant.stripes);
  if (asked.set.size() == 1) return Finish(asked, variant.algorithm, std::move(stripes));
  if (asked.request.operation == Operation::kBroadcast) {
    return Finish(asked, variant.algorithm,
                  {BroadcastSteps(variant.algorithm, asked.set, asked.links, layout)});
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
  const std::uint64_t bytes = asked.request.bytes;
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
    if (!aws && !asked.options.few_channels && !staggered.empty()) {
      variants.push_back({.algorithm = algorithm, .channels = std::move(staggered)});
    }
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
  if (operation == Operation::kBroadcast &&
      (algorithm == Algorithm::kKangaRing || algorithm == Algorithm::kBucket)) {
    return InvalidArgument("{} is no algorithm of broadcast; expected mesh, rdh, ring or tree",
                           name);
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

// Returns a lower bound of the time of trees on a regular set: a step carries one piece over a link
// of the fastest kind, and the links of a chip must bring it all pieces of the others.
VirtualDuration FastestTrees(const Question& asked) {
  std::uint64_t rate = 0;
  std::uint64_t fastest = 0;
  for (const torus::Axis axis : torus::kAxes) {
    const int extent = asked.set.box()->size.extent(axis);
    if (extent == 1) continue;
    const std::uint64_t link = asked.links.capacity(TorusLinks::IdOf(
        asked.links.torus().IndexOf(asked.set.box()->origin), axis, torus::Direction::kPlus));
    rate += extent == 2 ? link : 2 * link;
    fastest = std::max(fastest, link);
  }
  TAHOMA_CHECK(rate > 0);  // a regular set has more than one chip
  const LinkTiming& timing = asked.links.timing();
  const VirtualDuration startup =
      WorkOf(0, 1, {}, asked.options.costs, timing).start + timing.step + timing.hop;
  VirtualDuration least = VirtualDuration::max();
  for (const std::uint64_t parts : collective::kTreeParts) {
    const std::uint64_t pieces = asked.set.size() * parts;
    if (parts > 1 && pieces > collective::kTreePiecesMax) break;
    const Wide others = static_cast<Wide>(pieces) - static_cast<Wide>(parts);
    const auto steps = static_cast<VirtualDuration::rep>((others * fastest + rate - 1) / rate);
    least =
        std::min(least, steps * (startup + TransferTime(asked.request.bytes / pieces, fastest)));
  }
  return least * static_cast<VirtualDuration::rep>(PhasesOf(asked.request.operation).size());
}

absl::StatusOr<Plan> FastestOf(const Question& asked) {
  const std::vector<Algorithm> offered = OfferedTo(asked);
  if (!asked.regular() || asked.request.operation == Operation::kBroadcast) {
    // Any set is served by a mesh, if by anything.
    TAHOMA_ASSIGN_OR_RETURN(Plan best, PlanAlgorithm(asked, Algorithm::kMesh));
    for (const Algorithm algorithm : offered) {
      if (algorithm == Algorithm::kMesh) continue;
      auto plan = PlanAlgorithm(asked, algorithm);
      if (plan.ok() && plan->times.end < best.times.end) best = *std::move(plan);
    }
    return best;
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
  if (!trees || FastestTrees(asked) >= best.times.end - best.times.start) return best;
  TAHOMA_ASSIGN_OR_RETURN(Plan plan, PlanTrees(asked));
  return plan.times.end < best.times.end ? std::move(plan) : std::move(best);
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

#include "sim-node/emulator/collective/plan/plan_trees.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/cuts.h"
#include "lib/collective/forms.h"
#include "lib/collective/partition.h"
#include "sim-node/emulator/collective/algorithms/trees.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/estimate.h"
#include "sim-node/emulator/collective/plan/plan_pipelines.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

// The steps that a piece may take over the fastest link, and the part of a link's rate that a
// coarser grain may waste.
constexpr std::uint64_t kGrainMost = 4;
constexpr std::uint64_t kWasteMost = 32;  // a 32nd

// The most chips for which an all-reduce is planned with equal shares, too. They take fewer pieces,
// so fewer steps, and that counts most on few chips.
constexpr std::size_t kEqualSharesMost = 16;

// The parts of the buffer that the chips of a set own, by place.
using Shares = std::vector<std::uint64_t>;

Shares SharesOf(const Question& asked, const collective::SumShares& sums) {
  Shares shares;
  for (const ChipIndex chip : asked.set.chips()) {
    shares.push_back(sums.of[static_cast<std::size_t>(chip.value())]);
  }
  return shares;
}

// The numbers of pieces that chips own when there are about `count`: in proportion to their shares.
// Where it matters who owns what, none that has a share is without a piece.
std::vector<std::size_t> PiecesOf(const Shares& shares, std::uint64_t count, bool fixed) {
  const std::uint64_t whole = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
  TAHOMA_CHECK(whole > 0);  // somebody owns something
  std::vector<std::size_t> pieces;
  for (const std::uint64_t share : shares) {
    const auto near =
        static_cast<std::size_t>((static_cast<Wide>(share) * count + whole / 2) / whole);
    pieces.push_back(fixed && share > 0 ? std::max<std::size_t>(near, 1) : near);
  }
  return pieces;
}

// Whether a slow link would waste much of its rate: it takes a whole number of steps for a piece.
bool Wastes(const Question& asked, std::uint64_t fastest, std::uint64_t grain) {
  for (LinkId link = 0; link < asked.links.id_count(); ++link) {
    const std::uint64_t rate = asked.links.capacity(link);
    if (rate == 0 || !asked.set.HasBothEnds(asked.links.HopOf(link))) continue;
    const std::uint64_t steps = (fastest * grain + rate - 1) / rate;
    if ((steps * rate - fastest * grain) * kWasteMost > fastest * grain) return true;
  }
  return false;
}

// Trees leave links alone that are slower than an eighth of the fastest, or than a sixteenth, and
// so on, if all takes no more than a 32nd longer without them.
constexpr std::uint64_t kMissed = 32;

// Returns how many steps of the fastest link a link may take for what that carries in one.
std::uint64_t SlowestOf(const Question& asked, std::uint64_t fastest) {
  const std::span<const std::uint64_t> rates = asked.links.capacities();
  const auto steps_of = [&](std::uint64_t rate) { return (fastest + rate - 1) / rate; };
  std::uint64_t slowest = kSlowestAlways;
  for (LinkId link = 0; link < asked.links.id_count(); ++link) {
    const std::uint64_t rate = asked.links.capacity(link);
    if (rate == 0 || !asked.set.HasBothEnds(asked.links.HopOf(link))) continue;
    slowest = std::max(slowest, steps_of(rate));
  }
  if (slowest == kSlowestAlways) return slowest;
  const auto worst_of = [&](std::uint64_t most) {
    std::vector<std::uint64_t> used(rates.begin(), rates.end());
    std::ranges::replace_if(
        used, [&](auto rate) { return rate > 0 && steps_of(rate) > most; }, 0);
    return collective::WorstGatherCut(collective::DomainLinks(asked.links.torus(), used, {}),
                                      asked.set.mask(), asked.set.mask());
  };
  const collective::Cut worst = worst_of(slowest);
  for (std::uint64_t most = kSlowestAlways; most < slowest; most *= 2) {
    if (worst_of(most).HardlyWorseThan(worst, kMissed)) return most;
  }
  return slowest;
}

// The ways to cut a buffer that are worth trying: finer ones fill the links better.
std::vector<TreeCut> TreeCutsOf(const Question& asked, const Shares* shares) {
  const std::size_t chips = asked.set.size();
  const std::uint64_t fastest = FastestLink(asked.set, asked.links);
  const std::uint64_t slowest = SlowestOf(asked, fastest);
  std::vector<TreeCut> cuts;
  for (const collective::TreeCourse& course : collective::TreeCourses(chips, fastest)) {
    TreeCut cut{.pieces = std::vector<std::size_t>(chips, course.parts),
                .bundle = course.bundle,
                .slowest = slowest};
    if (asked.request.operation == Operation::kBroadcast) {
      cut.pieces.assign(chips, 0);
      cut.pieces[0] = chips * course.parts;
    } else if (shares != nullptr) {
      const bool fixed = asked.request.operation != Operation::kAllReduce;
      cut.pieces = PiecesOf(*shares, chips * course.parts, fixed);
    }
    cuts.push_back(cut);
    if (course.bundle > 1) continue;
    for (cut.grain = 2; cut.grain <= kGrainMost; ++cut.grain) {
      if (!Wastes(asked, fastest, cut.grain - 1)) break;
      cuts.push_back(cut);
    }
  }
  return cuts;
}

// The trees of each phase.
using TreesOfPhases = std::vector<std::pair<Phase, Trees>>;

std::optional<TreesOfPhases> TreesOf(const Question& asked, const TreeCut& cut) {
  const bool alike = HasLikeDirections(asked.set, asked.links);
  TreesOfPhases all;
  for (const Phase phase : PhasesOf(asked.request.operation)) {
    auto trees =
        !all.empty() && alike ? all.front().second : Trees::Of(phase, asked.set, asked.links, cut);
    if (!trees) return std::nullopt;
    all.emplace_back(phase, *std::move(trees));
  }
  return all;
}

VirtualDuration Estimate(const Question& asked, const TreesOfPhases& phases, std::size_t stripes) {
  std::vector<PlannedStep> steps;
  for (const auto& [phase, trees] : phases) {
    const std::uint64_t bytes = asked.request.bytes * asked.options.copies / trees.grains();
    const ChipUse use = asked.UseOf(Algorithm::kTree, phase);
    const auto touches =
        static_cast<std::uint64_t>(use.reads) + static_cast<std::uint64_t>(use.writes);
    const int degree = trees.degree();
    const VirtualDuration part = TransferTime(bytes, trees.fastest());
    const StepWork work = WorkOf(bytes / stripes * static_cast<std::uint64_t>(degree) * touches,
                                 degree, use, asked.options.costs, asked.links.timing());
    for (const double load : trees.loads()) {
      const auto link = static_cast<VirtualDuration::rep>(static_cast<double>(part.count()) * load);
      steps.push_back({.outline = {.link = VirtualDuration(link)}, .work = work});
    }
  }
  return EstimateTime(steps, stripes, asked.links.timing());
}

absl::StatusOr<Plan> PlanPhases(const Question& asked, const Shares* shares) {
  std::optional<TreesOfPhases> best;
  std::size_t stripes_of_best = 1;
  VirtualDuration least = VirtualDuration::max();
  for (const TreeCut& cut : TreeCutsOf(asked, shares)) {
    const auto phases = TreesOf(asked, cut);
    if (!phases) {
      return FailedPrecondition(
          "tree needs chips that are joined by links of their own; {} are not", asked.set.size());
    }
    for (const std::size_t stripes : StripesOf(asked.options)) {
      const VirtualDuration time = Estimate(asked, *phases, stripes);
      if (!(stripes > stripes_of_best ? IsMuchLess(time, least) : time < least)) continue;
      least = time;
      best = phases;
      stripes_of_best = stripes;
    }
  }
  TAHOMA_CHECK(best.has_value());
  Layout layout = LayoutOf(asked);
  if (asked.request.operation == Operation::kBroadcast) layout.fixed = false;
  std::vector<std::vector<Step>> steps(stripes_of_best);
  for (std::size_t index = 0; index < stripes_of_best; ++index) {
    for (const auto& [phase, trees] : *best) {
      std::vector<Step> of_phase =
          trees.Steps(phase, layout, {.index = index, .count = stripes_of_best});
      std::move(of_phase.begin(), of_phase.end(), std::back_inserter(steps[index]));
    }
  }
  return Finish(asked, Algorithm::kTree, std::move(steps));
}

// A reduce-scatter and an all-gather in shares of which no part of the set sends too much.
absl::StatusOr<Plan> PlanShares(const Question& asked, const collective::SumShares& shares) {
  const Shares sums = SharesOf(asked, shares);
  TAHOMA_ASSIGN_OR_RETURN(Plan best, PlanPhases(asked, &sums));
  if (asked.set.size() <= kEqualSharesMost) {
    TAHOMA_ASSIGN_OR_RETURN(Plan equal, PlanPhases(asked, nullptr));
    if (equal.times.end < best.times.end) best = std::move(equal);
  }
  return best;
}

// The faster one of those that there are.
absl::StatusOr<Plan> FasterOf(absl::StatusOr<Plan> flow, absl::StatusOr<Plan> phases) {
  if (!flow.ok()) return phases;
  return phases.ok() && phases->times.end <= flow->times.end ? std::move(phases) : std::move(flow);
}

// An all-reduce of chips that links join: in phases, or with pieces that flow up and back at once.
absl::StatusOr<Plan> PlanAllReduce(const Question& asked, const collective::SumShares& shares) {
  if (asked.regular()) return PlanShares(asked, shares);
  auto flow = PlanFlow(asked);
  // Phases take at least what their links need, and seldom less than a 64th more: where pieces that
  // flow are within a 32nd of that, one set of some hundred gains by phases, and 1 %. Planning them
  // takes ten times as long as all the rest.
  const VirtualDuration least = std::max(
      collective::TreesTime(std::array{shares.phase, shares.phase}, asked.set.size(),
                            FastestLink(asked.set, asked.links), asked.request.bytes,
                            DomainLinksOf(asked.links, asked.options.costs).costs()),
      LowerBound(asked.request.operation, asked.set, asked.request.bytes, asked.links) * 65 / 64);
  if (flow.ok() && flow->times.end - flow->times.start < least + least / 32) return flow;
  // Over very slow links phases have many thousand steps, and planning them takes seconds.
  const std::uint64_t slowest = SlowestOf(asked, FastestLink(asked.set, asked.links));
  if (flow.ok() && slowest > kSlowestAlways) return flow;
  return FasterOf(std::move(flow), PlanShares(asked, shares));
}

// A broadcast of chips that links join: in pieces that spread step by step, or along branchings.
absl::StatusOr<Plan> PlanBroadcastTrees(const Question& asked) {
  const auto branchings = FindBranchings(asked);
  if (!branchings.ok()) return PlanPhases(asked, nullptr);
  const collective::DomainLinks links = DomainLinksOf(asked.links, asked.options.costs);
  const collective::Cut worst = collective::WorstBroadcastCut(
      links, asked.set.mask(), asked.set.mask(), asked.set.chips()[0].value());
  const VirtualDuration pieces = collective::BroadcastTime(worst, /*farthest=*/1, asked.set.size(),
                                                           FastestLink(asked.set, asked.links),
                                                           asked.request.bytes, links.costs());
  if (branchings->time <= pieces) return PlanBroadcast(asked, *branchings);
  auto phases = PlanPhases(asked, nullptr);
  if (phases.ok() && branchings->time >= phases->times.end - phases->times.start) return phases;
  return FasterOf(PlanBroadcast(asked, *branchings), std::move(phases));
}

}  // namespace

absl::StatusOr<Plan> PlanTrees(const Question& asked) {
  if (asked.set.size() == 1) return Finish(asked, Algorithm::kTree, {{}});
  const bool joined = asked.set.hangs_together();
  if (asked.request.operation == Operation::kAllReduce && joined) {
    const auto shares = collective::BestSumShares(DomainLinksOf(asked.links), asked.set.mask());
    if (shares.phase.rate != 0) return PlanAllReduce(asked, shares);
  }
  if (asked.request.operation == Operation::kBroadcast && joined) return PlanBroadcastTrees(asked);
  const Shares given(asked.options.shares.begin(), asked.options.shares.end());
  return PlanPhases(asked, given.empty() ? nullptr : &given);
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
  const StepWork work{.start = WorkOf(0, 1, {}, asked.options.costs, timing).start, .memory = {}};
  const std::size_t phases = PhasesOf(asked.request.operation).size();
  VirtualDuration least = VirtualDuration::max();
  for (const collective::TreeCourse& course : collective::TreeCourses(asked.set.size(), fastest)) {
    const std::uint64_t pieces = asked.set.size() * course.parts;
    const Wide others = static_cast<Wide>(pieces) - static_cast<Wide>(course.parts);
    const Wide at_once = static_cast<Wide>(rate) * course.bundle;
    const auto steps = static_cast<std::size_t>((others * fastest + at_once - 1) / at_once);
    const VirtualDuration on_links =
        TransferTime(asked.request.bytes / pieces, fastest) *
        static_cast<VirtualDuration::rep>((others * fastest + rate - 1) / rate);
    const PlannedStep step{.outline = {.link = on_links / static_cast<VirtualDuration::rep>(steps)},
                           .work = work};
    for (const std::size_t stripes : StripesOf(asked.options)) {
      least = std::min(least, EstimateTime(std::vector(steps * phases, step), stripes, timing));
    }
  }
  return least;
}

}  // namespace tahoma::sim

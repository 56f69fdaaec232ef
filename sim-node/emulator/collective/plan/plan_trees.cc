#include "sim-node/emulator/collective/plan/plan_trees.h"

#include <algorithm>
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
#include "sim-node/emulator/collective/algorithms/moves.h"
#include "sim-node/emulator/collective/algorithms/trees.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/estimate.h"

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
std::vector<std::size_t> PiecesOf(const Shares& shares, std::uint64_t count) {
  const std::uint64_t whole = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
  TAHOMA_CHECK(whole > 0);  // somebody owns something
  std::vector<std::size_t> pieces;
  for (const std::uint64_t share : shares) {
    pieces.push_back(
        static_cast<std::size_t>((static_cast<Wide>(share) * count + whole / 2) / whole));
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
    if (shares != nullptr) cut.pieces = PiecesOf(*shares, chips * course.parts);
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

VirtualDuration Estimate(const Question& asked, const TreesOfPhases& phases) {
  std::vector<PlannedStep> steps;
  for (const auto& [phase, trees] : phases) {
    const std::uint64_t bytes = asked.request.bytes * asked.options.copies / trees.grains();
    const ChipUse use = asked.UseOf(Algorithm::kTree, phase);
    const auto touches =
        static_cast<std::uint64_t>(use.reads) + static_cast<std::uint64_t>(use.writes);
    const int degree = trees.degree();
    const VirtualDuration part = TransferTime(bytes, trees.fastest());
    const StepWork work = WorkOf(bytes * static_cast<std::uint64_t>(degree) * touches, degree, use,
                                 asked.options.costs, asked.links.timing());
    for (const double load : trees.loads()) {
      const auto link = static_cast<VirtualDuration::rep>(static_cast<double>(part.count()) * load);
      steps.push_back({.outline = {.link = VirtualDuration(link)}, .work = work});
    }
  }
  return EstimateTime(steps, /*stripes=*/1, asked.links.timing());
}

absl::StatusOr<Plan> PlanPhases(const Question& asked, const Shares* shares) {
  std::optional<TreesOfPhases> best;
  VirtualDuration least = VirtualDuration::max();
  for (const TreeCut& cut : TreeCutsOf(asked, shares)) {
    auto phases = TreesOf(asked, cut);
    if (!phases) {
      return FailedPrecondition(
          "tree needs chips that are joined by links of their own; {} are not", asked.set.size());
    }
    const VirtualDuration time = Estimate(asked, *phases);
    if (time >= least) continue;
    least = time;
    best = std::move(phases);
  }
  TAHOMA_CHECK(best.has_value());
  const Layout layout = LayoutOf(asked);
  std::vector<Step> steps;
  if (asked.request.operation == Operation::kBroadcast) {
    steps = ScatterFromRoot(Algorithm::kTree, asked.set, asked.links, layout, /*whole=*/false);
  }
  for (const auto& [phase, trees] : *best) {
    std::ranges::move(trees.Steps(phase, layout), std::back_inserter(steps));
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

}  // namespace

absl::StatusOr<Plan> PlanTrees(const Question& asked) {
  if (asked.set.size() == 1) return Finish(asked, Algorithm::kTree, {});
  if (asked.request.operation == Operation::kAllReduce && asked.set.hangs_together()) {
    const auto shares = collective::BestSumShares(DomainLinksOf(asked.links), asked.set.mask());
    if (shares.phase.rate != 0) return PlanShares(asked, shares);
  }
  return PlanPhases(asked, nullptr);
}

}  // namespace tahoma::sim

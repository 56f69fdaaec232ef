#include "sim-node/emulator/collective/plan/plan_pipelines.h"

#include <absl/functional/function_ref.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/branchings.h"
#include "lib/collective/forms.h"
#include "sim-node/emulator/collective/algorithms/branching_steps.h"
#include "sim-node/emulator/collective/algorithms/heads_and_tails.h"
#include "sim-node/emulator/collective/algorithms/packing.h"
#include "sim-node/emulator/collective/algorithms/tree_flow.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/estimate.h"

namespace tahoma::sim {
namespace {

// How a buffer flows through trees.
struct Pipeline {
  std::size_t chunks = 1;
  std::size_t stripes = 1;
  VirtualDuration time = VirtualDuration::max();
};

// The fastest pipeline when the whole buffer takes `on_links` on the fullest link, the first chunk
// is everywhere `fill` steps after it is where the last one starts, and each needs so many sends.
Pipeline FastestPipeline(const Question& asked, VirtualDuration on_links, std::size_t fill,
                         std::size_t sends) {
  const LinkTiming& timing = asked.links.timing();
  const StepWork work{.start = WorkOf(0, 1, {}, asked.options.costs, timing).start, .memory = {}};
  const auto given = static_cast<std::uint64_t>(asked.options.stripes);
  Pipeline best;
  for (const auto& [chunks, stripes] : collective::ChunkCourses(sends)) {
    if (given != 0 && stripes != given) continue;
    const PlannedStep step{
        .outline = {.link = on_links / static_cast<VirtualDuration::rep>(chunks)}, .work = work};
    const VirtualDuration time = EstimateTime(std::vector(chunks + fill, step), stripes, timing);
    if (IsMuchLess(time, best.time)) best = {.chunks = chunks, .stripes = stripes, .time = time};
  }
  return best;
}

// The plan of the steps of each stripe.
absl::StatusOr<Plan> FinishStripes(
    const Question& asked, std::size_t count,
    absl::FunctionRef<std::vector<Step>(const Layout&, Stripe)> steps_of) {
  const Layout layout = LayoutOf(asked);
  std::vector<std::vector<Step>> steps;
  for (std::size_t index = 0; index < count; ++index) {
    steps.push_back(steps_of(layout, {.index = index, .count = count}));
  }
  return Finish(asked, Algorithm::kTree, std::move(steps));
}

// The pieces that the fullest cable carries, of those that the fastest could carry in that time.
double FullestOf(const TreePacking& packing) {
  double most = 0;
  for (const TreePacking::Cable& cable : packing.cables()) {
    most = std::max(most, static_cast<double>(cable.trees) / static_cast<double>(cable.rate));
  }
  return most * static_cast<double>(packing.fastest()) /
         static_cast<double>(packing.trees().size());
}

// On average.
std::size_t HeightOf(const TreePacking& packing) {
  std::size_t sum = 0;
  for (const TreePacking::Tree& tree : packing.trees()) sum += tree.back().depth;
  return (sum + packing.trees().size() - 1) / packing.trees().size();
}

// The steps from the root to the chip that is the farthest in time, on average.
double WayOf(const TreePacking& packing, std::uint64_t grain) {
  std::vector<double> length;  // of each cable
  for (const TreePacking::Cable& cable : packing.cables()) {
    length.push_back(std::max(
        1.0, static_cast<double>(packing.fastest()) / static_cast<double>(cable.rate * grain)));
  }
  double sum = 0;
  for (const TreePacking::Tree& tree : packing.trees()) {
    std::array<double, 64> way{};
    double longest = 0;
    for (const TreePacking::Branch& branch : tree) {
      way.at(branch.chip) = way.at(branch.parent) + length[branch.cable];
      longest = std::max(longest, way.at(branch.chip));
    }
    sum += longest;
  }
  return sum / static_cast<double>(packing.trees().size());
}

// The most pieces that the fastest link carries in a step for slow ones to carry one.
constexpr std::uint64_t kCoarsest = 8;

// By grain, from 1, how many times as long the ways are as where each link carries a whole piece in
// a step; up to the grain from which on all links do.
std::vector<double> SlownessOf(const TreePacking& packing) {
  std::uint64_t slowest = packing.fastest();
  for (const TreePacking::Cable& cable : packing.cables()) {
    if (cable.trees > 0) slowest = std::min(slowest, cable.rate);
  }
  const double height = static_cast<double>(HeightOf(packing));
  std::vector<double> slowness;
  for (std::uint64_t grain = 1; grain <= kCoarsest && grain * slowest < packing.fastest();
       ++grain) {
    slowness.push_back(std::max(1.0, WayOf(packing, grain) / height));
  }
  return slowness;
}

// The orders that are tried where links are idle for long; each takes some milliseconds.
constexpr std::size_t kOrders = 40;

// The part of the time that other pieces must save.
constexpr VirtualDuration::rep kWorthPieces = 500;

// Trees that make the fullest link busy for longer than this part of the bound are not repeated.
constexpr VirtualDuration::rep kUneven = 400;

// The most sends of a plan in which pieces flow; few sets need so many.
constexpr std::uint64_t kFlowSendsMost = 800'000;

// Pieces that flow along packed trees, and how.
class Flows {
 public:
  explicit Flows(const Question& asked) : asked_(asked) {}

  // Packs so many trees; false when no cables join the chips.
  bool Pack(std::size_t pieces) {
    packing_ = TreePacking::Of(asked_.set, asked_.links, pieces);
    if (!packing_) return false;
    Load();
    return true;
  }
  // Packs more trees: the same again, where that makes as many and they load the links evenly.
  void PackMore(std::size_t pieces) {
    if (pieces % load_.pieces == 0 && IsEven()) {
      packing_->Repeat(pieces / load_.pieces);
    } else {
      packing_ = TreePacking::Of(asked_.set, asked_.links, pieces);
    }
    Load();
  }

  // Lets the pieces flow as they take the least time, and learns for how many steps links are idle.
  void Flow(std::size_t orders) {
    course_ = Best(load_.pieces);
    if (orders > 0) {
      packing_ = ShortenWaits(*std::move(packing_), course_.grain);
      load_.fullest = FullestOf(*packing_);
    }
    flow_.emplace(*packing_, course_.grain, orders);
    const std::size_t idle = flow_->step_count() - std::min(flow_->step_count(), BusySteps());
    load_.idle_steps = static_cast<std::size_t>(
        std::lround(static_cast<double>(idle) / load_.SlownessAt(course_.grain)));
    // Where links are idle for less than was thought, steps may be longer, so of fewer stripes.
    course_ = InFewStripes(load_.pieces, [&](std::uint64_t stripes) {
      collective::FlowCourse course{.grain = course_.grain, .stripes = stripes};
      course.time = collective::FlowTime(load_, course, costs_);
      return course;
    });
  }

  // The best course of so many pieces, which load the links as these do.
  collective::FlowCourse Best(std::uint64_t pieces) const {
    collective::FlowLoad load = load_;
    load.pieces = pieces;
    return InFewStripes(
        pieces, [&](std::uint64_t stripes) { return collective::BestFlow(load, stripes, costs_); });
  }
  // Up and back over each branch of a tree.
  std::uint64_t Sends(std::uint64_t pieces, std::uint64_t stripes) const {
    return 2 * (asked_.set.size() - 1) * pieces * stripes;
  }
  // The number of pieces with which the time comes near to that of the links, by the fewest sends
  // that do.
  std::uint64_t BestPieces() const {
    std::uint64_t best = load_.pieces;
    VirtualDuration time = Best(best).time;
    for (const std::uint64_t pieces : PiecesWorthTrying()) {
      if (time <= TimeEnough()) break;
      const VirtualDuration other = Best(pieces).time;
      if (!IsMuchLess(other, time, kWorthPieces)) continue;
      time = other;
      best = pieces;
    }
    return best;
  }
  // What is not worth a better plan.
  VirtualDuration TimeEnough() const { return TimeOnLinks() * 26 / 25; }

  // The time that the fullest link needs.
  VirtualDuration TimeOnLinks() const {
    return VirtualDuration(static_cast<VirtualDuration::rep>(
        load_.fullest * static_cast<double>(load_.on_fastest.count())));
  }

  std::uint64_t pieces() const { return load_.pieces; }
  const collective::FlowCourse& course() const { return course_; }
  const TreeFlow& flow() const { return *flow_; }

 private:
  void Load() {
    load_.pieces = packing_->trees().size();
    load_.fullest = FullestOf(*packing_);
    load_.slowness = SlownessOf(*packing_);
    load_.on_fastest = TransferTime(asked_.request.bytes, packing_->fastest());
    if (load_.idle_steps == 0) load_.idle_steps = HeightOf(*packing_);
  }

  bool IsEven() const {
    const VirtualDuration least =
        LowerBound(Operation::kAllReduce, asked_.set, asked_.request.bytes, asked_.links);
    return TimeOnLinks() <= least + least / kUneven;
  }

  // The course in the fewest stripes that are nearly as good as more, or in those that are given.
  collective::FlowCourse InFewStripes(
      std::uint64_t pieces,
      absl::FunctionRef<collective::FlowCourse(std::uint64_t stripes)> course_of) const {
    if (asked_.options.stripes != 0) {
      return course_of(static_cast<std::uint64_t>(asked_.options.stripes));
    }
    collective::FlowCourse best = course_of(kMaxStripes);
    for (std::uint64_t more = kMaxStripes + 1;
         more <= collective::kFlowStripesMost && Sends(pieces, more) <= kFlowSendsMost; ++more) {
      const collective::FlowCourse course = course_of(more);
      if (IsMuchLess(course.time, best.time)) best = course;
    }
    return best;
  }

  // Numbers of pieces that rise to twice and twice again, and those that fill the steps of a course
  // such that no stripe has to wait for its start, by the sends that they need.
  std::vector<std::uint64_t> PiecesWorthTrying() const {
    std::vector<std::uint64_t> all;
    for (std::uint64_t more = 2 * load_.pieces; Sends(more, 2) <= kFlowSendsMost; more *= 2) {
      all.push_back(more);
    }
    const auto start = static_cast<double>((costs_.step + costs_.hop).count());
    const auto on_fastest = static_cast<double>(load_.on_fastest.count());
    for (std::uint64_t stripes = 2; stripes <= collective::kFlowStripesMost; ++stripes) {
      const double step = start * static_cast<double>(stripes) / static_cast<double>(stripes - 1);
      // Up to twice what lets each link carry a whole piece.
      const std::uint64_t coarsest = std::min(kCoarsest, 2 * (load_.slowness.size() + 1));
      for (std::uint64_t grain = 1; grain <= coarsest; ++grain) {
        const auto pieces =
            static_cast<std::uint64_t>(on_fastest * static_cast<double>(grain) / step);
        if (pieces > load_.pieces && Sends(pieces, stripes) <= kFlowSendsMost) {
          all.push_back(pieces);
        }
      }
    }
    std::ranges::sort(all, {}, [this](std::uint64_t pieces) {
      return std::pair(Sends(pieces, Best(pieces).stripes), pieces);
    });
    return all;
  }

  // The steps that the fullest cable needs. Its part of the pieces is a quotient, so a whole number
  // of steps may come out a little higher.
  std::size_t BusySteps() const {
    const double steps =
        load_.fullest * static_cast<double>(load_.pieces) / static_cast<double>(course_.grain);
    return static_cast<std::size_t>(std::ceil(steps - 1e-6));
  }

  const Question& asked_;
  const collective::LinkCosts costs_ = DomainLinksOf(asked_.links, asked_.options.costs).costs();
  std::optional<TreePacking> packing_;
  std::optional<TreeFlow> flow_;
  collective::FlowLoad load_;
  collective::FlowCourse course_;
};

}  // namespace

absl::StatusOr<BranchingPipeline> FindBranchings(const Question& asked) {
  BranchingPipeline found;
  found.trees = collective::PackBranchings(DomainLinksOf(asked.links), asked.set.mask(),
                                           asked.set.chips()[0].value());
  if (found.trees.empty()) return FailedPrecondition("no links lead from the root to all chips");
  const std::uint64_t rate = collective::RateOf(found.trees);
  TAHOMA_CHECK(rate > 0);
  const Pipeline pipeline = FastestPipeline(asked, TransferTime(asked.request.bytes, rate),
                                            collective::HeightOf(found.trees) - 1,
                                            (asked.set.size() - 1) * found.trees.size());
  found.chunks = pipeline.chunks;
  found.stripes = pipeline.stripes;
  found.time = pipeline.time;
  return found;
}

absl::StatusOr<Plan> PlanFlow(const Question& asked) {
  Flows flows(asked);
  if (!flows.Pack(collective::FlowPieces(asked.set.size()))) {
    return FailedPrecondition("no cables join the chips");
  }
  flows.Flow(/*orders=*/0);
  if (flows.course().time > flows.TimeEnough()) {
    // Where links are idle for longer than trees are high, another course may be better, or other
    // pieces.
    const std::uint64_t pieces = flows.BestPieces();
    const bool enough = flows.Best(pieces).time <= flows.TimeEnough();
    if (pieces != flows.pieces()) flows.PackMore(pieces);
    flows.Flow(enough ? 0 : kOrders);
    if (enough && flows.course().time > flows.TimeEnough()) flows.Flow(kOrders);
  }
  return FinishStripes(asked, flows.course().stripes, [&](const Layout& layout, Stripe stripe) {
    return flows.flow().Steps(layout, stripe);
  });
}

absl::StatusOr<Plan> PlanBroadcast(const Question& asked, const BranchingPipeline& pipeline) {
  return FinishStripes(asked, pipeline.stripes, [&](const Layout& layout, Stripe stripe) {
    const Layout parts = Layout::Weighted(std::vector(pipeline.chunks * stripe.count, 1),
                                          layout.bounds.back(), layout.element_bytes);
    return BranchingSteps(pipeline.trees, parts, stripe);
  });
}

}  // namespace tahoma::sim

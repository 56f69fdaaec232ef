#include "sim-node/collective/plan/plan_pipelines.h"

#include <absl/functional/function_ref.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/branchings.h"
#include "lib/collective/forms.h"
#include "sim-node/collective/algorithms/branching_steps.h"
#include "sim-node/collective/algorithms/packing.h"
#include "sim-node/collective/plan/bound.h"
#include "sim-node/collective/plan/estimate.h"

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
  Pipeline best;
  for (std::size_t chunks = 1; sends * chunks <= collective::kPipelineSendsMost; chunks *= 2) {
    for (const std::size_t stripes : StripesOf(asked.options)) {
      const PlannedStep step{
          .outline = {.link = on_links / static_cast<VirtualDuration::rep>(chunks)}, .work = work};
      const VirtualDuration time = EstimateTime(std::vector(chunks + fill, step), stripes, timing);
      if (time < best.time) best = {.chunks = chunks, .stripes = stripes, .time = time};
    }
  }
  return best;
}

// The plan of the steps of each stripe.
absl::StatusOr<Plan> FinishStripes(
    const Question& asked, std::size_t count,
    absl::FunctionRef<std::vector<Step>(const Layout&, Stripe)> steps_of) {
  const Layout layout = LayoutOf(asked.request, asked.members);
  std::vector<std::vector<Step>> steps;
  for (std::size_t index = 0; index < count; ++index) {
    steps.push_back(steps_of(layout, {.index = index, .count = count}));
  }
  return Finish(asked, Algorithm::kTree, std::move(steps));
}

// The time of the whole buffer on the fullest link.
VirtualDuration TimeOnLinks(const TreePacking& packing, std::uint64_t bytes) {
  const Wide carried = static_cast<Wide>(bytes) * packing.fullest_load() / packing.tree_count();
  return TransferTime(static_cast<std::uint64_t>(carried), packing.fullest_rate());
}

absl::StatusOr<Plan> PlanPackedTrees(const Question& asked, VirtualDuration time) {
  std::optional<TreePacking> chosen;
  Pipeline best{.time = time};
  for (const auto& [trees, load_percent] : collective::kPackedTrees) {
    auto packing = TreePacking::Of(asked.set, asked.links, trees);
    if (!packing) return FailedPrecondition("no cables join the chips");
    const Pipeline pipeline =
        FastestPipeline(asked, TimeOnLinks(*packing, asked.request.bytes), packing->fill(),
                        2 * (asked.set.size() - 1) * packing->tree_count());
    if (pipeline.time >= best.time) continue;
    best = pipeline;
    chosen = std::move(packing);
  }
  if (!chosen) return FailedPrecondition("packed trees are slower");
  return FinishStripes(asked, best.stripes, [&](const Layout& layout, Stripe stripe) {
    return chosen->Steps(best.chunks, layout, stripe);
  });
}

absl::StatusOr<Plan> PlanBranchings(const Question& asked, VirtualDuration time) {
  TAHOMA_ASSIGN_OR_RETURN(const BranchingPipeline pipeline, FindBranchings(asked));
  if (pipeline.time >= time) return FailedPrecondition("branchings are slower");
  return FinishStripes(asked, pipeline.stripes, [&](const Layout& layout, Stripe stripe) {
    const Layout parts = Layout::Weighted(std::vector(pipeline.chunks * stripe.count, 1),
                                          layout.bounds.back(), layout.element_bytes);
    return BranchingSteps(pipeline.trees, parts, stripe);
  });
}

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

absl::StatusOr<Plan> PlanPipeline(const Question& asked, VirtualDuration time) {
  return asked.request.operation == Operation::kBroadcast ? PlanBranchings(asked, time)
                                                          : PlanPackedTrees(asked, time);
}

}  // namespace tahoma::sim

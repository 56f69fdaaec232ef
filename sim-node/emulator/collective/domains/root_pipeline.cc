#include "sim-node/emulator/collective/domains/root_pipeline.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "sim-node/emulator/collective/algorithms/branching_steps.h"
#include "sim-node/emulator/collective/domains/region.h"
#include "sim-node/emulator/collective/plan/plan_pipelines.h"

namespace tahoma::sim {
namespace {

// Parts as long as this are cut finer than a plan in one domain, which takes milliseconds, may have
// them. More of them then start up while others are in flight.
constexpr std::uint64_t kLongPart = std::uint64_t{2} << 20U;
constexpr std::size_t kFiner = 4;

// The parts of all chunks, and by chunk the number of them up to its end.
struct Parts {
  Layout layout;
  std::vector<std::size_t> ends;
};

// Cuts each chunk into whole parts of about one length.
Parts PartsOf(const std::vector<std::uint64_t>& chunks, const BranchingPipeline& pipeline,
              std::uint64_t element_bytes) {
  Parts parts;
  parts.layout = {.element_bytes = element_bytes, .bounds = {0}, .fixed = false};
  const std::uint64_t count = pipeline.chunks * pipeline.stripes;
  const std::uint64_t longest = std::max<std::uint64_t>(chunks.back() / count, 1);
  for (std::size_t chunk = 0; chunk + 1 < chunks.size(); ++chunk) {
    const std::uint64_t elements = chunks[chunk + 1] - chunks[chunk];
    const std::vector<int> lengths(std::max<std::uint64_t>(elements / longest, 1), 1);
    const std::vector<std::uint64_t> cuts = CutBy(lengths, elements);
    for (std::size_t part = 1; part < cuts.size(); ++part) {
      parts.layout.bounds.push_back(chunks[chunk] + cuts[part]);
    }
    parts.ends.push_back(parts.layout.bounds.size() - 1);
  }
  return parts;
}

}  // namespace

absl::StatusOr<RootPipeline> RootPipelineOf(const Question& asked,
                                            const std::vector<std::uint64_t>& chunks) {
  TAHOMA_CHECK(chunks.size() > 1);
  TAHOMA_ASSIGN_OR_RETURN(BranchingPipeline found, FindBranchings(asked));
  if (asked.request.bytes / (found.chunks * found.stripes) >= kLongPart) {
    found.chunks *= kFiner / 2;
    found.stripes *= 2;
  }
  const Parts parts = PartsOf(chunks, found, Size(asked.request.type));
  RootPipeline pipeline{.stripes = found.stripes, .steps = {}, .ends = {}};
  std::vector<std::vector<Step>> stripes;
  for (std::size_t index = 0; index < found.stripes; ++index) {
    stripes.push_back(
        BranchingSteps(found.trees, parts.layout, {.index = index, .count = found.stripes}));
  }
  for (std::size_t i = 0; i < stripes[0].size() * found.stripes; ++i) {
    Step& step = stripes[i % found.stripes][i / found.stripes];
    pipeline.steps.work.push_back(WorkOfStep(asked, Algorithm::kTree, step));
    pipeline.steps.steps.push_back(std::move(step));
  }
  // A part's last step is as many of its stripe after its first as the highest tree has links more.
  const std::size_t more = (collective::HeightOf(found.trees) - 1) * found.stripes;
  for (const std::size_t end : parts.ends) pipeline.ends.push_back(end + more);
  return pipeline;
}

}  // namespace tahoma::sim

#include "sim-node/emulator/collective/domains/padded_steps.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "sim-node/emulator/collective/algorithms/moves.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"
#include "sim-node/emulator/collective/plan/plan_input.h"
#include "sim-node/emulator/collective/schedule/timing.h"

namespace tahoma::sim {
namespace {

// A step without sends that takes as long as the stage: its software, and the rest in memory, where
// other steps of the domain wait for it.
void AppendStage(VirtualDuration stage, const LinkTiming& timing, WorkedSteps& worked) {
  if (stage == VirtualDuration(0)) return;
  TAHOMA_CHECK(stage >= timing.step);
  worked.steps.emplace_back();
  worked.work.push_back({.start = {}, .memory = stage - timing.step});
}

WorkedSteps Worked(Schedule schedule, const LinkTiming& timing) {
  TAHOMA_CHECK(schedule.scheduled.empty());
  schedule.work.resize(schedule.steps.size());
  WorkedSteps worked;
  AppendStage(schedule.before, timing, worked);
  std::move(schedule.steps.begin(), schedule.steps.end(), std::back_inserter(worked.steps));
  worked.work.insert(worked.work.end(), schedule.work.begin(), schedule.work.end());
  AppendStage(schedule.after, timing, worked);
  return worked;
}

Operation OperationOf(Inside inside) {
  return inside == Inside::kReduceScatter ? Operation::kReduceScatter : Operation::kAllGather;
}

}  // namespace

std::uint64_t BytesOf(const Request& request, std::uint64_t elements) {
  return elements * Size(request.type);
}

Send MakeSend(const Request& request, torus::ChipIndex from, torus::ChipIndex to,
              const Extent& elements, Action action) {
  return {.from = from,
          .to = to,
          .offset = BytesOf(request, elements.begin),
          .to_offset = BytesOf(request, elements.begin),
          .bytes = BytesOf(request, elements.size()),
          .action = action};
}

absl::StatusOr<WorkedSteps> PaddedSteps::Of(Inside inside, const DomainSet::Group& group,
                                            const TorusLinks& links, std::uint64_t block,
                                            std::uint64_t times) const {
  if (inside == Inside::kScatter) {
    if (group.local.size() == 1) return WorkedSteps{};
    return Scatter(group, links, block);
  }
  Request asked{.operation = OperationOf(inside),
                .bytes = BytesOf(request_, block * group.local.size() * times),
                .type = request_.type};
  PlanOptions options = choice_.options;
  std::optional<Algorithm> algorithm = choice_.inside;
  if (!algorithm) {
    TAHOMA_ASSIGN_OR_RETURN(Plan plan, PlanCollective(asked, group.local, links, options));
    if (times == 1) return Worked(std::move(plan.schedule), links.timing());
    algorithm = plan.algorithm;
  }
  asked.bytes /= times;
  options.copies = times;
  TAHOMA_ASSIGN_OR_RETURN(Plan plan, PlanWith(*algorithm, asked, group.local, links, options));
  return Worked(std::move(plan.schedule), links.timing());
}

// Returns the steps that scatter from the first place to all: directly to each in one step, or
// along the channels of a box, which keep all of its links busy and take more steps. The faster
// of the two.
absl::StatusOr<WorkedSteps> PaddedSteps::Scatter(const DomainSet::Group& group,
                                                 const TorusLinks& links,
                                                 std::uint64_t block) const {
  const ChipSet set = SetOf(group.local, links);
  const std::vector<int> weights(set.size(), 1);
  const Layout layout = Layout::Weighted(weights, block * set.size(), Size(request_.type));
  const PlanInput input{request_, group.local, set, links, choice_.options};
  // What arrives is written to all ranks of a chip, as it is when it is gathered.
  const auto scattered = [&](Algorithm algorithm) {
    Schedule schedule;
    schedule.through = set.through();
    schedule.steps = ScatterFromRoot(algorithm, set, links, layout, /*whole=*/false);
    for (const Step& step : schedule.steps) {
      schedule.work.push_back(WorkOfStep(input, algorithm, step));
    }
    return schedule;
  };
  Schedule straight = scattered(Algorithm::kMesh);
  if (set.box() == nullptr) return Worked(std::move(straight), links.timing());
  Schedule channels = scattered(Algorithm::kRdh);
  TAHOMA_ASSIGN_OR_RETURN(const auto straight_times, TimeSchedules({&straight}, links));
  TAHOMA_ASSIGN_OR_RETURN(const auto channels_times, TimeSchedules({&channels}, links));
  return Worked(
      straight_times[0].end < channels_times[0].end ? std::move(straight) : std::move(channels),
      links.timing());
}

std::vector<Step> Unpadded(const std::vector<Step>& padded, const Request& request,
                           std::uint64_t block, const Region& region,
                           const std::vector<std::uint64_t>& bounds) {
  TAHOMA_CHECK(block > 0);
  const std::uint64_t size = Size(request.type);
  std::vector<Step> steps(padded.size());
  for (std::size_t t = 0; t < padded.size(); ++t) {
    for (const Send& send : padded[t]) {
      std::uint64_t at = send.offset / size;
      const std::uint64_t end = at + send.bytes / size;
      while (at < end) {
        const std::uint64_t place = at / block;
        const std::uint64_t until = std::min(end, (place + 1) * block);
        const std::uint64_t room = bounds[place + 1];
        const std::uint64_t from = std::min(bounds[place] + at % block, room);
        const std::uint64_t to = std::min(from + (until - at), room);
        for (const Extent& real : region.RealOf(from, to)) {
          steps[t].push_back(MakeSend(request, send.from, send.to, real, send.action));
        }
        at = until;
      }
    }
  }
  return steps;
}

}  // namespace tahoma::sim

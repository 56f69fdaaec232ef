#include "sim-node/emulator/collective/plan/plan_input.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

Phase PhaseOf(const Step& step) {
  const bool reduces = !step.empty() && step[0].action == Action::kReduce;
  return reduces ? Phase::kReduceScatter : Phase::kAllGather;
}

// The stages of a whole collective: before, between its phases, after.
struct AllStages {
  VirtualDuration before{};
  VirtualDuration between{};
  VirtualDuration after{};
};

AllStages StagesOf(const PlanInput& input, Algorithm algorithm) {
  AllStages all;
  const collective::LinkCosts costs = LinkCostsOf(input.options.costs, input.links.timing());
  const std::vector<Phase> phases = collective::PhasesOf(input.request.operation);
  for (std::size_t i = 0; i < phases.size(); ++i) {
    collective::ChipStages stages;
    for (const Member& member : input.members) {
      const collective::ChipStages own =
          collective::NeuronStages(algorithm, phases[i], input.request.bytes, input.set.size(),
                                   member.ranks, member.banks, costs);
      stages.before = std::max(stages.before, own.before);
      stages.after = std::max(stages.after, own.after);
    }
    (i == 0 ? all.before : all.between) += stages.before;
    (i + 1 == phases.size() ? all.after : all.between) += stages.after;
  }
  return all;
}

}  // namespace

int PlanInput::ranks() const {
  return std::ranges::max_element(members, {}, &Member::ranks)->ranks;
}

bool PlanInput::HasEqualRanks() const {
  return std::ranges::all_of(
      members, [&](const Member& member) { return member.ranks == members[0].ranks; });
}

bool PlanInput::regular() const {
  return set.box() != nullptr && set.size() > 1 && !links.IsDamaged(set.through()) &&
         HasEqualRanks();
}

Layout LayoutOf(const PlanInput& input) {
  const Request& request = input.request;
  std::vector<int> weights;
  for (const Member& member : input.members) weights.push_back(member.ranks);
  Layout layout = Layout::Weighted(weights, request.bytes / Size(request.type), Size(request.type));
  layout.fixed = request.operation != Operation::kAllReduce;
  return layout;
}

absl::StatusOr<Plan> Timed(Plan plan, const TorusLinks& links) {
  TAHOMA_ASSIGN_OR_RETURN(auto times, TimeSchedules({&plan.schedule}, links));
  plan.times = std::move(times[0]);
  return plan;
}

StepWork WorkOfStep(const PlanInput& input, Algorithm algorithm, const Step& step) {
  return WorkOf(step, collective::NeuronUse(algorithm, PhaseOf(step), input.ranks()), input.members,
                input.options.costs, input.links.timing());
}

absl::StatusOr<Plan> Finish(const PlanInput& input, Algorithm algorithm, std::vector<Step> steps) {
  Plan plan{.algorithm = algorithm, .schedule = {}, .times = {}};
  std::erase_if(steps, [](const Step& step) { return step.empty(); });
  plan.schedule.through = input.set.through();
  const AllStages stages = StagesOf(input, algorithm);
  plan.schedule.before = stages.before;
  plan.schedule.after = stages.after;
  bool reduced = false;
  bool gathers = false;
  for (Step& step : steps) {
    const Phase phase = PhaseOf(step);
    StepWork work = WorkOfStep(input, algorithm, step);
    reduced = reduced || phase == Phase::kReduceScatter;
    if (reduced && !gathers && phase == Phase::kAllGather) {
      work.start += stages.between;
      gathers = true;
    }
    plan.schedule.Add(std::move(step), work);
  }
  if (!gathers) plan.schedule.after += stages.between;  // nothing is copied between chips
  return Timed(std::move(plan), input.links);
}

}  // namespace tahoma::sim

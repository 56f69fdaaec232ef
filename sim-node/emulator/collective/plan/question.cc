#include "sim-node/emulator/collective/plan/question.h"

#include <utility>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

Phase PhaseOf(const Step& step) {
  const bool reduces = !step.empty() && step[0].action == Action::kReduce;
  return reduces ? Phase::kReduceScatter : Phase::kAllGather;
}

}  // namespace

std::vector<Phase> PhasesOf(Operation operation) {
  std::vector<Phase> phases;
  if (Combines(operation)) phases.push_back(Phase::kReduceScatter);
  if (operation != Operation::kReduceScatter) phases.push_back(Phase::kAllGather);
  return phases;
}

Layout LayoutOf(const Question& asked) {
  const Request& request = asked.request;
  std::vector<int> weights;
  for (const Member& member : asked.members) weights.push_back(member.ranks);
  Layout layout = Layout::Weighted(weights, request.bytes / Size(request.type), Size(request.type));
  layout.fixed = request.operation != Operation::kAllReduce;
  return layout;
}

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

absl::StatusOr<Plan> Timed(Plan plan, const TorusLinks& links) {
  TAHOMA_ASSIGN_OR_RETURN(auto times, TimeSchedules({&plan.schedule}, links));
  plan.times = std::move(times[0]);
  return plan;
}

StepWork WorkOfStep(const Question& asked, Algorithm algorithm, const Step& step) {
  return WorkOf(step, asked.UseOf(algorithm, PhaseOf(step)), asked.options.costs,
                asked.links.timing());
}

absl::StatusOr<Plan> Finish(const Question& asked, Algorithm algorithm, std::vector<Step> steps) {
  Plan plan{.algorithm = algorithm, .schedule = {}, .times = {}};
  std::erase_if(steps, [](const Step& step) { return step.empty(); });
  plan.schedule.through = asked.set.through();
  const AllStages stages = StagesOf(asked, algorithm);
  plan.schedule.before = stages.before;
  plan.schedule.after = stages.after;
  bool reduced = false;
  bool gathers = false;
  for (Step& step : steps) {
    const Phase phase = PhaseOf(step);
    StepWork work = WorkOfStep(asked, algorithm, step);
    reduced = reduced || phase == Phase::kReduceScatter;
    if (reduced && !gathers && phase == Phase::kAllGather) {
      work.start += stages.between;
      gathers = true;
    }
    plan.schedule.Add(std::move(step), work);
  }
  if (!gathers) plan.schedule.after += stages.between;  // nothing is copied between chips
  return Timed(std::move(plan), asked.links);
}

}  // namespace tahoma::sim

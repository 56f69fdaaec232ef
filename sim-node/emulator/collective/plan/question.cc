#include "sim-node/emulator/collective/plan/question.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/forms.h"

namespace tahoma::sim {
namespace {

Phase PhaseOf(const Step& step) {
  const bool reduces = !step.empty() && step[0].action == Action::kReduce;
  return reduces ? Phase::kReduceScatter : Phase::kAllGather;
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

// Adds the kept block to the steps of each phase, to each in proportion to its work in memory.
void AddKeptBlock(VirtualDuration kept, Schedule& schedule) {
  for (const Phase phase : {Phase::kReduceScatter, Phase::kAllGather}) {
    std::vector<StepWork*> of_phase;
    for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
      if (PhaseOf(schedule.steps[i]) == phase) of_phase.push_back(&schedule.work[i]);
    }
    SpreadOver(of_phase, kept);
  }
}

}  // namespace

VirtualDuration KeptBlockTime(const Question& asked) {
  const auto ranks = static_cast<std::uint64_t>(asked.ranks());
  if (ranks == 1 || asked.set.size() == 1 || asked.options.mode == PlanMode::kAws ||
      asked.request.operation == Operation::kBroadcast) {
    return VirtualDuration(0);
  }
  std::uint64_t all = 0;
  for (const Member& member : asked.members) all += static_cast<std::uint64_t>(member.ranks);
  std::uint64_t block = asked.request.bytes / all * ranks;
  if (const std::vector<int>& shares = asked.options.shares; !shares.empty()) {
    const auto most = static_cast<Wide>(std::ranges::max(shares));
    const int sum = std::accumulate(shares.begin(), shares.end(), 0);
    block = static_cast<std::uint64_t>(asked.request.bytes * most / static_cast<Wide>(sum));
  }
  return MemoryTime(block * ranks, asked.options.costs, asked.links.chip());
}

void SpreadOver(const std::vector<StepWork*>& steps, VirtualDuration kept) {
  double all = 0;
  for (const StepWork* step : steps) all += static_cast<double>(step->memory.count());
  if (all == 0) return;
  const double factor = static_cast<double>(kept.count()) / all;
  for (StepWork* step : steps) {
    step->memory += VirtualDuration(
        static_cast<std::int64_t>(static_cast<double>(step->memory.count()) * factor));
  }
}

std::vector<std::size_t> StripesOf(const PlanOptions& options) {
  if (options.stripes != 0) return {static_cast<std::size_t>(options.stripes)};
  std::vector<std::size_t> all;
  for (std::size_t stripes = 1; stripes <= collective::kTreeStripesMost; stripes *= 2) {
    all.push_back(stripes);
  }
  return all;
}

std::vector<Phase> PhasesOf(Operation operation) {
  std::vector<Phase> phases;
  if (Combines(operation)) phases.push_back(Phase::kReduceScatter);
  if (operation != Operation::kReduceScatter) phases.push_back(Phase::kAllGather);
  return phases;
}

Layout LayoutOf(const Question& asked) {
  const Request& request = asked.request;
  std::vector<int> weights = asked.options.shares;
  if (weights.empty()) {
    for (const Member& member : asked.members) weights.push_back(member.ranks);
  }
  TAHOMA_CHECK(weights.size() == asked.members.size());
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
  const auto of = [&](std::span<const Send> sends, Phase phase) {
    return WorkOf(sends, asked.UseOf(algorithm, phase), asked.options.costs, asked.links.timing());
  };
  const auto copies = std::ranges::find(step, Action::kCopy, &Send::action);
  if (copies == step.begin() || copies == step.end()) return of(step, PhaseOf(step));
  TAHOMA_CHECK(std::ranges::find(copies, step.end(), Action::kReduce, &Send::action) == step.end());
  const auto sums = static_cast<std::size_t>(copies - step.begin());
  const StepWork one = of(std::span(step).first(sums), Phase::kReduceScatter);
  const StepWork other = of(std::span(step).subspan(sums), Phase::kAllGather);
  return {.start = std::max(one.start, other.start), .memory = one.memory + other.memory};
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
    StepWork work = WorkOfStep(asked, algorithm, step);
    reduced = reduced || phase == Phase::kReduceScatter;
    if (reduced && phase == Phase::kAllGather && waiting > 0) {
      work.start += stages.between;
      --waiting;
    }
    plan.schedule.work.push_back(work);
  }
  if (waiting > 0) plan.schedule.after += stages.between;  // nothing is copied between chips
  AddKeptBlock(KeptBlockTime(asked), plan.schedule);
  return Timed(std::move(plan), asked.links);
}

}  // namespace tahoma::sim

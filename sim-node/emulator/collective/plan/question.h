// The planners of all kinds of collectives start and end alike: from the request with its chips and
// links, with a schedule of steps with the chips' work and its times.
//
//   const Question asked{request, members, set, links, options};
//   return Finish(asked, Algorithm::kTree, steps);
//
// Scope: internal to plan.h.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <algorithm>
#include <vector>

#include "sim-node/emulator/collective/plan/chip_cost.h"
#include "sim-node/emulator/collective/plan/plan.h"

namespace tahoma::sim {

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
    return NeuronUse(algorithm, phase, ranks());
  }
  ChipStages StagesOf(Algorithm algorithm, Phase phase) const {
    return NeuronStages(algorithm, phase, request.bytes, set.size(), ranks(), options.costs,
                        links.timing());
  }
};

// The phases that the operation needs, in order; a broadcast is made as an all-gather is.
std::vector<Phase> PhasesOf(Operation operation);

// Blocks in proportion to the ranks of each chip.
Layout LayoutOf(const Question& asked);

// The stages of a whole collective: before, between its phases, after.
struct AllStages {
  VirtualDuration before{};
  VirtualDuration between{};
  VirtualDuration after{};
};
AllStages StagesOf(const Question& asked, Algorithm algorithm);

// The plan with the times of its schedule.
absl::StatusOr<Plan> Timed(Plan plan, const TorusLinks& links);

// Returns the work of a step of the algorithm, all of whose sends are of one phase.
StepWork WorkOfStep(const Question& asked, Algorithm algorithm, const Step& step);

// The plan of these steps, without those that are empty.
absl::StatusOr<Plan> Finish(const Question& asked, Algorithm algorithm, std::vector<Step> steps);

}  // namespace tahoma::sim

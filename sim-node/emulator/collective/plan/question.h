// The planners of all kinds of collectives start and end alike: from the request with its chips and
// links, with a schedule of steps with the chips' work and its times.
//
//   const Question asked{request, members, set, links, options};
//   return Finish(asked, Algorithm::kTree, {steps});
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
    return options.mode == PlanMode::kAws ? NeuronUse(algorithm, phase, ranks())
                                          : MergedUse(phase, ranks());
  }
  ChipStages StagesOf(Algorithm algorithm, Phase phase) const {
    if (options.mode == PlanMode::kAws) {
      return NeuronStages(algorithm, phase, request.bytes, set.size(), ranks(), options.costs,
                          links.timing());
    }
    if (set.size() > 1 || ranks() == 1) return {};
    const auto buffers = static_cast<std::uint64_t>(ranks()) + 1;
    const VirtualDuration stage = StageTime(request.bytes * buffers, options.costs, links.timing());
    return phase == Phase::kReduceScatter ? ChipStages{.before = stage, .after = {}}
                                          : ChipStages{.before = {}, .after = stage};
  }
};

// Returns the time in which the memory of a chip whose ranks act as one reads the block that it
// keeps from all of them, or writes it to all: in each phase once, beside the messages. 0 for one
// rank, which does so with every byte that it combines, for Neuron's algorithms, whose stages have
// it, and for a broadcast.
VirtualDuration KeptBlockTime(const Question& asked);
// Adds it to the steps of one phase, to each in proportion to its work in memory.
void SpreadOver(const std::vector<StepWork*>& steps, VirtualDuration kept);

// The numbers of stripes that are worth trying along trees: while one starts up, the links serve
// the others.
std::vector<std::size_t> StripesOf(const PlanOptions& options);

// Whether one time is less than another by so much that more sends are worth it: by this part.
inline bool IsMuchLess(VirtualDuration time, VirtualDuration other,
                       VirtualDuration::rep part = 250) {
  return time < other - other / part;
}

// The phases that the operation needs, in order; a broadcast is made as an all-gather is.
std::vector<Phase> PhasesOf(Operation operation);

// Blocks in proportion to the shares that are given, or else to the ranks of each chip.
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

// Returns the work of a step of the algorithm. One in which some chips sum up and others spread
// sums does both works; what it sums up must stand before what it spreads.
StepWork WorkOfStep(const Question& asked, Algorithm algorithm, const Step& step);

// A plan of the steps of each stripe; all stripes have as many.
absl::StatusOr<Plan> Finish(const Question& asked, Algorithm algorithm,
                            std::vector<std::vector<Step>> stripes);

}  // namespace tahoma::sim

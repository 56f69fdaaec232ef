// The input of all plans of one request, and what the planners of all algorithms share: from the
// request with its chips and links to a schedule of steps with the chips' work and its times.
//
//   const PlanInput input{request, members, set, links, options};
//   return Finish(input, Algorithm::kTree, steps);
//
// Scope: internal to plan.h.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "lib/collective/domain_links.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"
#include "sim-node/emulator/collective/plan/plan.h"

namespace tahoma::sim {

struct PlanInput {
  const Request& request;
  const std::vector<Member>& members;
  const ChipSet& set;
  const TorusLinks& links;
  const PlanOptions& options;

  // Returns the ranks of the fullest chip, which decide how often a byte is touched.
  int ranks() const;
  // Returns the banks of the chip that has the fewest, for the closed form.
  int banks() const { return FewestBanks(members); }
  bool HasEqualRanks() const;
  // Whether the chips are a subcube in full health with equal ranks: the closed form is exact.
  bool regular() const;
  collective::DomainLinks rates() const { return DomainLinksOf(links, options.costs); }
};

// Returns blocks in proportion to the ranks of each chip.
Layout LayoutOf(const PlanInput& input);

// Returns the plan with the times of its schedule.
absl::StatusOr<Plan> Timed(Plan plan, const TorusLinks& links);

// Returns the work of a step of the algorithm, all of whose sends are of one phase.
StepWork WorkOfStep(const PlanInput& input, Algorithm algorithm, const Step& step);

// Returns the plan of these steps, without those that are empty.
absl::StatusOr<Plan> Finish(const PlanInput& input, Algorithm algorithm, std::vector<Step> steps);

}  // namespace tahoma::sim

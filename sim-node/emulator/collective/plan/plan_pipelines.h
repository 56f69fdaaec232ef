// Plans collectives over trees through which a buffer flows piece after piece, on any set of chips
// that hangs together: an all-reduce over packed trees that sum up and spread at the same time
// (tree_flow.h), and a broadcast along branchings (lib/collective/branchings.h). Both come as close
// to the bound of the links as one likes for large buffers: the first piece has to cross a whole
// tree before all links are busy.
//
//   TAHOMA_ASSIGN_OR_RETURN(const BranchingPipeline pipeline, FindBranchings(asked));
//   auto plan = PlanBroadcast(asked, pipeline);
//
// The number of pieces is decided by closed forms; what is chosen is then timed message by message.
//
// Scope: internal to plan_trees.h; branchings serve broadcasts over several domains, too.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <vector>

#include "lib/collective/branchings.h"
#include "sim-node/emulator/collective/plan/question.h"
#include "sim-node/emulator/engine/virtual_time.h"

namespace tahoma::sim {

// An all-reduce. kFailedPrecondition when cables that are up do not join the chips.
absl::StatusOr<Plan> PlanFlow(const Question& asked);

// The trees of a broadcast, and how its buffer flows through them.
struct BranchingPipeline {
  std::vector<collective::Branching> trees;
  std::size_t chunks = 1;  // of each stripe
  std::size_t stripes = 1;
  VirtualDuration time{};
};
// kFailedPrecondition when links that are up do not lead from the root to all chips.
absl::StatusOr<BranchingPipeline> FindBranchings(const Question& asked);
// A broadcast along them.
absl::StatusOr<Plan> PlanBroadcast(const Question& asked, const BranchingPipeline& pipeline);

}  // namespace tahoma::sim

// Plans a collective: chooses an algorithm for a request and times its schedule.
//
//   auto plan = PlanCollective({.operation = Operation::kAllReduce, .bytes = 1 << 20,
//                               .type = ElementType::kFp32}, members, links);
//   Name(plan->algorithm);                    // "mesh"
//   plan->times.end - plan->times.start;      // virtual time
//
// Only chips take part in the messages; chip_cost.h has the costs of their ranks. On a healthy box
// the closed form of lib/collective chooses the algorithm; elsewhere every one is timed, trees
// included.
//
// Scope: pure functions of the request, the members and the state of the links: every process that
// takes part plans for itself and gets the same.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "sim-node/emulator/collective/algorithms/algorithms.h"
#include "sim-node/emulator/collective/algorithms/chip_set.h"
#include "sim-node/emulator/collective/plan/plan_options.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/collective/schedule/timing.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

// Returns the set of the members' chips, in their order. They must be different and in the torus of
// `links`.
ChipSet SetOf(const std::vector<Member>& members, const TorusLinks& links);

struct Plan {
  Algorithm algorithm = Algorithm::kMesh;
  Schedule schedule;
  ScheduleTimes times;  // from virtual time 0
  // Send-receive and permute: whose buffer each rank gets.
  std::vector<int> sources = {};
};

// kInvalidArgument for no members, a chip twice or outside the torus, ranks outside 1 .. 8, banks
// outside 1 .. 4, a size that is no multiple of the element's, or what moves.h says.
// kFailedPrecondition when links that are down cut members off. An exchange is always "mesh".
absl::StatusOr<Plan> PlanCollective(const Request& request, const std::vector<Member>& members,
                                    const TorusLinks& links, const PlanOptions& options = {});

// The same with the algorithm given. Also kInvalidArgument when the operation or the members do
// not allow it, and why.
absl::StatusOr<Plan> PlanWith(Algorithm algorithm, const Request& request,
                              const std::vector<Member>& members, const TorusLinks& links,
                              const PlanOptions& options = {});

}  // namespace tahoma::sim

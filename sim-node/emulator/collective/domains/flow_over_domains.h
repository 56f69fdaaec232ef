// An all-reduce over few topology domains in which each piece of the buffer flows along a tree of
// its own (fabric_trees.h): it is summed up towards the root, in each domain over NeuronLinks and
// from domain to domain over a pair of NICs, and spread back, while other pieces do the same.
//
//   const FlowQuestion asked{request, set, fabric, options};
//   const std::vector<DomainFlow> flows = FlowsWorthTrying(asked);
//   auto schedule = FlowOverDomains(asked, flows[0]);
//
// NeuronLinks carry what an all-reduce in one domain needs, whatever chips have NICs, and NICs what
// they need between domains: no chip hands anything over for another. A cable carries each piece of
// its trees once in each direction, wherever roots and NICs are.
//
// In each step the fastest link of a domain carries `grain` pieces. Which ones is decided for all
// domains together (task_order.h). A domain makes one step after the other; messages between
// domains go beside them, and a step waits for those that brought what it sends.
//
// Scope: internal to hierarchical.h.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim-node/emulator/collective/domains/domains.h"
#include "sim-node/emulator/collective/plan/plan_options.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {

struct FlowQuestion {
  const Request& request;  // an all-reduce
  const DomainSet& set;
  const Fabric& fabric;
  const PlanOptions& options;
};

// How the buffer is cut.
struct DomainFlow {
  std::size_t pieces = 1;   // at most; a tenth fewer where it makes them even
  std::uint64_t grain = 1;  // the pieces that the fastest link carries in a step
  std::size_t stripes = 1;  // that take steps alternately: one starts up while others are in flight
};

// Returns the finest cuttings with which links do not wait for the start of a step, that take some
// tenths of a second to plan.
std::vector<DomainFlow> FlowsWorthTrying(const FlowQuestion& asked);

// The schedule names chips by their numbers in the fabric. kFailedPrecondition when the chips of a
// domain are not joined by cables, or no NIC of a domain is up.
absl::StatusOr<Schedule> FlowOverDomains(const FlowQuestion& asked, const DomainFlow& flow);

}  // namespace tahoma::sim

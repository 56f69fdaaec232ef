// Collectives over the units of a fabric: NeuronLink inside, EFA between.
//
//   auto plan = PlanOnFabric({.bytes = 1 << 30}, members, fabric);
//   Name(plan->algorithm);          // "hier" as soon as the members are in several units
//
// all-reduce      reduce-scatter in each unit, all-reduce between the chips that answer for one
//                 block, all-gather in each unit (docs/reference/collectives.md#over-efa)
// reduce-scatter  in each unit, then between them
// all-gather      between the units, then in each
// broadcast       scatter in the first member's unit, broadcast between the units, all-gather
// others          every chip sends to every other directly, within a unit and between
//
// The buffer is cut into chunks that go through the phases one after the other, so that NeuronLink
// and EFA work at the same time. In a unit the algorithm is the one that plan.h chooses for its
// chips; between units it is the fastest of between_units.h.
//
// Units may have different numbers of chips and different faults. A chip whose NIC is down answers
// for nothing between the units: its neighbours do. Its messages of an exchange go over their NICs
// (nic_relay.h), for which chips keep Schedule::relay_bytes for each other.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <vector>

#include "sim-node/collective/plan/plan.h"
#include "sim-node/collective/schedule/request.h"
#include "sim-node/collective/units/between_units.h"
#include "sim-node/link/fabric.h"

namespace tahoma::sim {

// What is not given is chosen such that the collective ends first.
struct HierarchyChoice {
  std::optional<Algorithm> inside = std::nullopt;
  std::optional<InterAlgorithm> between = std::nullopt;
  std::optional<int> chunks = std::nullopt;  // at least 1
  // What counts inside the units. Slices are not used there: chunks overlap instead.
  PlanOptions options = {};
};

// Members by their number in the fabric. In one unit this is PlanCollective there. What that says
// of members and requests holds here too; kFailedPrecondition also when no chip of a unit has a NIC
// that is up (of an exchange, that is up in the direction that it needs).
absl::StatusOr<Plan> PlanOnFabric(const Request& request, const std::vector<Member>& members,
                                  const Fabric& fabric, const HierarchyChoice& choice = {});

}  // namespace tahoma::sim

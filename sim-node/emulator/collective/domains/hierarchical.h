// Collectives over the topology domains (UltraServers or lone instances) of a fabric: NeuronLink
// inside, EFA between.
//
//   auto plan = PlanOnFabric({.bytes = 1 << 30}, members, fabric);
//   Name(plan->algorithm);          // "hier" as soon as the members are in several domains
//
// all-reduce      reduce-scatter in each domain, all-reduce between the chips that answer for one
//                 block, all-gather in each domain (docs/reference/collectives.md#over-efa); or
//                 pieces flow along trees over few domains (flow_over_domains.h)
// reduce-scatter  in each domain, then between them
// all-gather      between the domains, then in each
// broadcast       scatter in the first member's domain, broadcast between domains, all-gather; or
//                 it flows through the first member's domain, and is gathered in the others; or
//                 through all domains, if they have the same chips (twin_broadcast.h)
// others          every chip sends to every other directly, within a domain and between
//
// The buffer is cut into chunks that go through the phases one after the other, so that NeuronLink
// and EFA work at the same time. In a domain the algorithm is the one that plan.h chooses for its
// chips; between domains it is the fastest of between_domains.h.
//
// Domains may have different numbers of chips and different faults. A chip answers between the
// domains for as much as its NIC can carry: its neighbours do the rest, or what a domain gathers
// and scatters is cut for its NICs inside, too; an all-reduce that flows hands nothing over. In an
// exchange the messages of a chip whose NIC is
// down go over theirs (nic_relay.h), for which chips keep Schedule::relay_bytes for each
// other.
//
// Of more than 32 domains, and of fewer that are all alike, one message stands for those between
// all domains of two kinds (domain_meshes.h, all_to_all.h), level by level where uplinks limit
// (level_meshes.h). More than 512 domains are refused with kFailedPrecondition where there are too
// many kinds.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <vector>

#include "sim-node/emulator/collective/domains/between_domains.h"
#include "sim-node/emulator/collective/plan/plan.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {

// Fixed choices of a plan. Those that are not given are made such that the collective ends first.
struct HierarchyChoice {
  std::optional<Algorithm> inside = std::nullopt;
  std::optional<InterAlgorithm> between = std::nullopt;
  std::optional<int> chunks = std::nullopt;  // at least 1
  // The options inside the domains. Buffer stripes are not used there: chunks overlap instead.
  PlanOptions options = {};
};

// Members by their number in the fabric. In one domain this is PlanCollective there, whose rules
// for members and requests hold here too; kFailedPrecondition also when no chip of a domain has a
// NIC that is up (of an exchange, that is up in the direction that it needs).
absl::StatusOr<Plan> PlanOnFabric(const Request& request, const std::vector<Member>& members,
                                  const Fabric& fabric, const HierarchyChoice& choice = {});

}  // namespace tahoma::sim

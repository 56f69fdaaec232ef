// Collectives over the topology domains (UltraServers or lone instances) of a fabric: NeuronLink
// inside, EFA between.
//
//   auto plan = PlanOnFabric({.bytes = 1 << 30}, members, fabric);
//   Name(plan->algorithm);          // "hier" as soon as the members are in several domains
//
// all-reduce      reduce-scatter in each domain, all-reduce between the chips that answer for one
//                 block, all-gather in each domain (docs/reference/collectives.md#over-efa)
// reduce-scatter  in each domain, then between them
// all-gather      between the domains, then in each
// broadcast       scatter in the first member's domain, broadcast between domains, all-gather
// others          every chip sends to every other directly, within a domain and between
//
// The buffer is cut into chunks that go through the phases one after the other, so that NeuronLink
// and EFA work at the same time. In a domain the algorithm is the one that plan.h chooses for its
// chips; between domains it is the fastest of between_domains.h.
//
// Domains may have different numbers of chips and different faults. A chip whose NIC is down sends
// and receives through a proxy's (nic_proxies.h); in an exchange the proxy keeps what it relays in
// Schedule::relay_bytes.
//
// Where domains are of few kinds, one message stands for those between all domains of two kinds
// (domain_meshes.h, all_to_all.h). More than 512 domains are refused with
// kFailedPrecondition where there are too many kinds.
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
  PlanOptions options = {};
};

// Members by their number in the fabric. In one domain this is PlanCollective there, whose rules
// for members and requests hold here too; kFailedPrecondition also when no chip of a domain has a
// NIC that is up.
absl::StatusOr<Plan> PlanOnFabric(const Request& request, const std::vector<Member>& members,
                                  const Fabric& fabric, const HierarchyChoice& choice = {});

}  // namespace tahoma::sim

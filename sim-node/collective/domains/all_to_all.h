// An all-to-all over topology domains of which many are alike: what is sent in each domain of a
// kind is one step, and what each of a kind sends to each of another one mesh.
//
//   if (auto kinds = AllToAllKindsOf(request, members, set, fabric)) {
//     const Schedule schedule = AllToAllOver(request, members, set, *kinds, block);
//   }
//
// Scope: internal to hierarchical.h. Messages take the NICs of their own chips: where one is down
// they are relayed, and listed one by one (nic_relay.h).
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim-node/collective/domains/domains.h"
#include "sim-node/collective/schedule/request.h"
#include "sim-node/collective/schedule/schedule.h"
#include "sim-node/link/fabric.h"

namespace tahoma::sim {

// Returns the groups in kinds with the same ranks on the same chips, by first group. Nothing where
// messages must be listed: the request lists its blocks, a NIC is down, or the members of a domain
// do not follow one another.
std::optional<std::vector<DomainSet::Kind>> AllToAllKindsOf(const Request& request,
                                                            const std::vector<Member>& members,
                                                            const DomainSet& set,
                                                            const Fabric& fabric);

// Blocks have so many bytes. The work of the first steps is that of the messages inside the domains
// of each kind, that of the last of those between.
Schedule AllToAllOver(const Request& request, const std::vector<Member>& members,
                      const DomainSet& set, const std::vector<DomainSet::Kind>& kinds,
                      std::uint64_t block);

}  // namespace tahoma::sim

// The physical lower bound of a collective over several topology domains: no algorithm can be
// faster than the links and NICs of the chip, the NICs of the domain and the uplinks of the node of
// the network that have most to carry.
//
//   const auto bound = LowerBoundOnFabric(request, members, fabric);    // nullopt: none is known
//
// Each byte that is gathered enters every chip, domain and node; one that is summed up crosses
// between n chips, domains or nodes n - 1 times, and as often when it is spread.
//
// Scope: bytes only, as bound.h; the inside of a domain by single chips, without cuts between
// several of them. No bound for send-receive and permute.
//
// Thread safety: pure functions.

#pragma once

#include <optional>
#include <vector>

#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {

// Members of at least two domains of the fabric, the root first. Links and NICs count as they are
// now; VirtualDuration::max() when one that is needed has no rate.
std::optional<VirtualDuration> LowerBoundOnFabric(const Request& request,
                                                  const std::vector<Member>& members,
                                                  const Fabric& fabric);

}  // namespace tahoma::sim

// A broadcast over topology domains with the same chips, along trees through all of them
// (lib/collective/twin_trees.h): chunk after chunk leaves the root, goes through its domain, from
// each chip over EFA to its twins in the other domains, and through these.
//
//   if (MayGoToTwins(request, set, fabric)) {
//     auto schedule = BroadcastToTwins(request, set, fabric, options);
//   }
//
// A chunk moves one link further in each step, in all domains at once, and no chunk waits until the
// one before it has arrived: so all links of the root and nearly all others are busy from the time
// when the first chunk has reached the last chip until the last one has left the root.
//
// Scope: internal to hierarchical.h.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include "sim-node/emulator/collective/domains/domains.h"
#include "sim-node/emulator/collective/plan/plan_options.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {

// Whether the domains have the same chips, and no uplink can limit them.
bool MayGoToTwins(const Request& request, const DomainSet& set, const Fabric& fabric);

// The schedule names chips by their numbers in the fabric. kFailedPrecondition when links that are
// up do not lead from the root to all chips of its domain, or the buffer is too small to flow.
absl::StatusOr<Schedule> BroadcastToTwins(const Request& request, const DomainSet& set,
                                          const Fabric& fabric, const PlanOptions& options);

}  // namespace tahoma::sim

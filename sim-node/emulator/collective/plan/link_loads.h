// The load that a collective puts on each link.
//
//   TAHOMA_ASSIGN_OR_RETURN(const std::vector<LinkLoad> loads, LoadsOf(plan, fabric));
//
// A link is busy in a step from the departure until the last message that crosses it has arrived.
// Messages count on the routes that they have on the links as they are when the collective begins:
// on NeuronLinks, and between topology domains on NICs and all uplinks of the route, also those
// that never limit. What a scheduled step does in many domains is counted once for those that are
// alike, and what many chunks do once for all.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "sim-node/emulator/collective/plan/plan.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {

struct LinkLoad {
  LinkId link = 0;
  std::uint64_t bytes = 0;
  VirtualDuration busy{};
  friend bool operator==(const LinkLoad&, const LinkLoad&) = default;
};

// By their ids in the fabric, ascending; links that carry nothing are left out. kFailedPrecondition
// when a message has no route.
absl::StatusOr<std::vector<LinkLoad>> LoadsOf(const Plan& plan, const Fabric& fabric);
// The loads of plans that run side by side.
absl::StatusOr<std::vector<LinkLoad>> LoadsOf(const std::vector<const Plan*>& plans,
                                              const Fabric& fabric);

}  // namespace tahoma::sim

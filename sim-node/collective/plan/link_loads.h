// The load that a collective puts on each link.
//
//   TAHOMA_ASSIGN_OR_RETURN(const std::vector<LinkLoad> loads, LoadsOf(plan, fabric));
//
// A link is busy in a step from the departure until the last message that crosses it has arrived.
// Messages count on the routes that they have on the links as they are when the collective begins.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "sim-node/collective/plan/plan.h"
#include "sim-node/engine/virtual_time.h"
#include "sim-node/link/fabric.h"

namespace tahoma::sim {

struct LinkLoad {
  LinkId link = 0;
  std::uint64_t bytes = 0;
  VirtualDuration busy{};
  friend bool operator==(const LinkLoad&, const LinkLoad&) = default;
};

// Counting more sends takes longer than planning them: the hierarchies of very many chips.
inline constexpr std::uint64_t kMaxCountedSends = 1'000'000;

// NeuronLinks by their ids in the fabric, ascending; links that carry nothing are left out, and all
// are when the plan has more than kMaxCountedSends. kFailedPrecondition when a message has no
// route.
absl::StatusOr<std::vector<LinkLoad>> LoadsOf(const Plan& plan, const Fabric& fabric);
// The loads of plans that run side by side.
absl::StatusOr<std::vector<LinkLoad>> LoadsOf(const std::vector<const Plan*>& plans,
                                              const Fabric& fabric);

}  // namespace tahoma::sim

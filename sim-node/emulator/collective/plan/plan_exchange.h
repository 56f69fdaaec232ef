// Plans exchanges: operations that move buffers without combining them, in one step of messages.
//
//   TAHOMA_ASSIGN_OR_RETURN(Plan plan, PlanExchange(asked));
//
// On a healthy box messages go whole on one route each; elsewhere in parts on routes of their own
// (lib/collective/route_search.h), if that is faster.
//
// Scope: internal to plan.h.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include "sim-node/emulator/collective/plan/question.h"

namespace tahoma::sim {

// Errors are those of ExchangeOf, and kFailedPrecondition when links that are down cut members off.
absl::StatusOr<Plan> PlanExchange(const Question& asked);

}  // namespace tahoma::sim

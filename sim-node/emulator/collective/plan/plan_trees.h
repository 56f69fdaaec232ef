// Plans collectives over trees, for any set of chips that hangs together.
//
// One phase after the other, each piece along a tree of its own (trees.h); of an all-reduce the
// chips sum up shares such that no part of the set sends more than it must (lib/collective/
// partition.h). How finely the buffer is cut is decided by closed forms; what is chosen is then
// timed message by message.
//
// Scope: internal to plan.h.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include "sim-node/emulator/collective/plan/question.h"

namespace tahoma::sim {

// kFailedPrecondition when the links that are fast enough do not join the chips.
absl::StatusOr<Plan> PlanTrees(const Question& asked);

}  // namespace tahoma::sim

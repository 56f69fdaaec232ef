// Tells which devices an alternative selects: by the expressions of its class and its own, and by
// the nodes of a device that has nodes of its own.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include "controller/allocate/candidate.h"
#include "controller/allocate/wanted.h"

namespace tahoma::controller::allocate {

// kInvalidArgument, with the place of the expression, for one that does not compile or fails on
// the device, and for a device with an attribute of a type that is not known or switched off.
absl::StatusOr<bool> Selects(const Alternative& alternative, const Candidate& candidate,
                             NodeView node, const Features& features);

}  // namespace tahoma::controller::allocate

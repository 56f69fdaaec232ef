// A sim-node that shows a fleet of virtual nodes in place of an emulated node.
//
// Thread safety: as SimNode's.

#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "sim-node/app/options.h"
#include "sim-node/app/sim_node.h"

namespace tahoma::sim {

// Fails when the API server's address or credentials cannot be used; waits for a silent API server.
absl::StatusOr<std::unique_ptr<SimNode>> StartFleet(const Options& options);

}  // namespace tahoma::sim

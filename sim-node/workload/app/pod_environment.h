// Reads from a pod's environment its claim and its place in the gang.
//
// Thread safety: none; the environment belongs to the process.

#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "sim-node/workload/nccom_test.h"

namespace tahoma::sim {

// "" for a variable that is not set.
std::string Environment(const char* name);

struct PodEnvironment {
  std::string socket;
  std::string token;

  // Reads TAHOMA_NODE_SOCKET and TAHOMA_CLAIM_TOKEN. kFailedPrecondition without a claim.
  static absl::StatusOr<PodEnvironment> Read();
  // Reads TAHOMA_RANK, TAHOMA_WORLD_SIZE, and TAHOMA_COMM_ID or NEURON_RT_ROOT_COMM_ID.
  // kInvalidArgument for a wrong place.
  absl::StatusOr<CommPlace> Place() const;
};

}  // namespace tahoma::sim

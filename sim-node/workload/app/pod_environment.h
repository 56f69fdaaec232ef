// Reads from a pod's environment its claim and its place in the gang.
//
// Thread safety: none; the environment belongs to the process.

#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "sim-node/workload/nccom_test.h"

namespace tahoma::sim {

struct PodEnvironment {
  std::string socket;
  std::string token;
  CommPlace place;

  // Reads TAHOMA_NODE_SOCKET, TAHOMA_CLAIM_TOKEN, TAHOMA_RANK, TAHOMA_WORLD_SIZE, and
  // TAHOMA_COMM_ID or NEURON_RT_ROOT_COMM_ID. kFailedPrecondition without a claim, kInvalidArgument
  // for a wrong place.
  static absl::StatusOr<PodEnvironment> Read();
};

}  // namespace tahoma::sim

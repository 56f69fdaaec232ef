#include "sim-node/workload/app/pod_environment.h"

#include <cstdlib>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

absl::StatusOr<int> Number(const char* name, int fallback) {
  const std::string text = Environment(name);
  if (text.empty()) return fallback;
  if (text.size() > 4 || text.find_first_not_of("0123456789") != std::string::npos) {
    return InvalidArgument("{} is \"{}\"; expected a number", name, text);
  }
  return std::stoi(text);
}

}  // namespace

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<PodEnvironment> PodEnvironment::Read() {
  PodEnvironment pod;
  pod.socket = Environment("TAHOMA_NODE_SOCKET");
  pod.token = Environment("TAHOMA_CLAIM_TOKEN");
  if (pod.socket.empty() || pod.token.empty()) {
    return FailedPrecondition(
        "TAHOMA_NODE_SOCKET and TAHOMA_CLAIM_TOKEN are not set; run in a pod with a Neuron claim");
  }
  return pod;
}

absl::StatusOr<CommPlace> PodEnvironment::Place() const {
  CommPlace place;
  TAHOMA_ASSIGN_OR_RETURN(place.rank, Number("TAHOMA_RANK", 0));
  TAHOMA_ASSIGN_OR_RETURN(place.world_size, Number("TAHOMA_WORLD_SIZE", 1));
  if (place.world_size < 1 || place.rank >= place.world_size) {
    return InvalidArgument(
        "TAHOMA_RANK is {}, TAHOMA_WORLD_SIZE {}; expected a rank below the size", place.rank,
        place.world_size);
  }
  place.comm_id = Environment("TAHOMA_COMM_ID");
  if (place.comm_id.empty()) place.comm_id = Environment("NEURON_RT_ROOT_COMM_ID");
  if (place.comm_id.empty() && place.world_size > 1) {
    return InvalidArgument("set TAHOMA_COMM_ID or NEURON_RT_ROOT_COMM_ID to the same for all pods");
  }
  if (place.comm_id.empty()) place.comm_id = "alone-" + token;
  return place;
}

}  // namespace tahoma::sim

#include "sim-node/workload/usage_node.h"

#include <chrono>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

constexpr std::chrono::seconds kTimeout{10};

}  // namespace

absl::StatusOr<DeviceList> UsageNode::Devices() {
  TAHOMA_ASSIGN_OR_RETURN(const wire::Reply reply,
                          call_.OfClaim("devices", Json::object(), kTimeout));
  return ParseDevices(reply.result);
}

absl::StatusOr<CoreReading> UsageNode::Read() {
  TAHOMA_ASSIGN_OR_RETURN(const wire::Reply reply,
                          call_.OfClaim("coreCounters", Json::object(), kTimeout));
  return ParseCoreReading(reply.result);
}

}  // namespace tahoma::sim

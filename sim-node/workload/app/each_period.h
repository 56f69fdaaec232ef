// Reads the use of a claim's cores once a period, for neuron-monitor and neuron-top.
//
// Thread safety: none.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <thread>
#include <utility>

#include "lib/base/status.h"
#include "sim-node/workload/app/pod_environment.h"
#include "sim-node/workload/neuron_monitor.h"
#include "sim-node/workload/usage_node.h"

namespace tahoma::sim {

// Waits and calls print(usage) again and again, until the result is false; then returns 0. Fails as
// UsageNode.
template <typename Print>
absl::StatusOr<int> EachPeriod(const PodEnvironment& pod, std::chrono::nanoseconds period,
                               Print print) {
  UsageNode node(pod.socket, pod.token);
  UsagePeriod usage;
  TAHOMA_ASSIGN_OR_RETURN(usage.after, node.Read());
  do {
    std::this_thread::sleep_for(period);
    usage.before = std::move(usage.after);
    TAHOMA_ASSIGN_OR_RETURN(usage.devices, node.Devices());
    TAHOMA_ASSIGN_OR_RETURN(usage.after, node.Read());
  } while (print(std::as_const(usage)));
  return 0;
}

}  // namespace tahoma::sim

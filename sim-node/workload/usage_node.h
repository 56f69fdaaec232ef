// The sim-node of this pod, over its workload socket, for neuron-monitor and neuron-top.
//
//   UsageNode node("unix:/run/tahoma/node.sock", token);
//   node.Devices();
//   node.Read();
//
// Scope: the calls devices and coreCounters of docs/formats/wire.md.
//
// Thread safety: none.

#pragma once

#include <string>
#include <utility>

#include "sim-node/workload/comm_call.h"
#include "sim-node/workload/core_usage.h"
#include "sim-node/workload/neuron_ls.h"

namespace tahoma::sim {

class UsageNode {
 public:
  UsageNode(std::string address, std::string token) : call_(std::move(address), std::move(token)) {}

  absl::StatusOr<DeviceList> Devices();
  absl::StatusOr<CoreReading> Read();

 private:
  CommCall call_;
};

}  // namespace tahoma::sim

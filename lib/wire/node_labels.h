// The labels of a Kubernetes Node that follow from its instance.
//
//   for (const auto& [name, value] : InstanceLabels(inventory)) …  // nullopt: it must go
//
// The labels are the labels of EC2's cloud controller and of AWS's device plugin
// (docs/reference/aws-dra-driver.md#node-labels). The five labels of an UltraServer follow its
// election (neuron.amazonaws.com/ultraserver-mode "1_2_4", "busy" during an election). A label
// without a value is absent, because no label can hold the driver's "-1".
//
// Scope: names and values. The writer is a sim-node in the kubelet's place, else the dra-plugin.

#pragma once

#include <map>
#include <optional>
#include <string>

#include "lib/wire/messages.h"

namespace tahoma::wire {

// Uses the inventory's instance type, network layers, Capacity Block and UltraServer. Without an
// election the labels show a whole UltraServer as wired.
std::map<std::string, std::optional<std::string>> InstanceLabels(const Inventory& inventory);

}  // namespace tahoma::wire

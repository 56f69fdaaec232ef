// Finds the processes of this pod that use the devices of the claim.
//
// A process uses the devices when it has the claim's token in its environment and a socket open:
// sim-node is reached by a socket, and a shell has none. A pod sees the processes of its own user
// alone.
//
// Scope: /proc.

#pragma once

#include <string>
#include <vector>

#include "sim-node/workload/neuron_ls.h"

namespace tahoma::sim {

// In the order of their numbers.
std::vector<ListedProcess> ProcessesOf(const std::string& token, bool with_self);

}  // namespace tahoma::sim

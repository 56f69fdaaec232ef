#include "lib/wire/node_labels.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "lib/driver/ultraserver_mode.h"

namespace tahoma::wire {
namespace {

using Labels = std::map<std::string, std::optional<std::string>>;

void Set(const std::string& name, std::string value, Labels& labels) {
  if (value.empty()) return;
  labels[name] = std::move(value);
}

void SetServer(int nodes, const std::string& id, int node_id, Labels& labels) {
  if (id.empty()) return;
  labels[fmt::format("neuron.amazonaws.com/ultraserver-server-id-{}", nodes)] = id;
  labels[fmt::format("neuron.amazonaws.com/ultraserver-node-id-{}", nodes)] =
      std::to_string(node_id);
}

void SetUltraServer(const UltraServer& ultra_server, Labels& labels) {
  std::string& mode = labels["neuron.amazonaws.com/ultraserver-mode"].emplace();
  if (!ultra_server.election) {
    mode = "1_2_4";
    const int place = ultra_server.node_id;
    // A pair of nodes is joined by its left links: 0 with 1 and 2 with 3
    // (docs/reference/trainium2.md#ultraserver-election).
    SetServer(2, fmt::format("{}-{}", ultra_server.id, place / 2), place % 2, labels);
    SetServer(4, ultra_server.id, place, labels);
    return;
  }
  const UltraServerElection& elected = *ultra_server.election;
  mode = elected.running ? "busy" : hw::SizesLabel(elected.modes);
  SetServer(2, elected.server_id_2, elected.node_id_2, labels);
  SetServer(4, elected.server_id_4, elected.node_id_4, labels);
}

}  // namespace

Labels InstanceLabels(const Inventory& inventory) {
  Labels labels;
  for (const char* name : {"mode", "server-id-2", "node-id-2", "server-id-4", "node-id-4"}) {
    labels[fmt::format("neuron.amazonaws.com/ultraserver-{}", name)] = std::nullopt;
  }
  Set("node.kubernetes.io/instance-type", inventory.instance_type, labels);
  for (std::size_t i = 0; i < inventory.network_layers.size(); ++i) {
    Set(fmt::format("topology.k8s.aws/network-node-layer-{}", i + 1), inventory.network_layers[i],
        labels);
  }
  Set("topology.k8s.aws/capacity-block-id", inventory.capacity_block_id, labels);
  if (inventory.ultra_server.has_value()) {
    Set("topology.k8s.aws/ultraserver-id", inventory.ultra_server->id, labels);
    SetUltraServer(*inventory.ultra_server, labels);
  }
  return labels;
}

}  // namespace tahoma::wire

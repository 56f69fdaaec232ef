#include "sim-node/podrunner/node_object.h"

#include <array>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using json = Json;

constexpr std::string_view kVersion = "v1.36.0-tahoma";

json Condition(const char* type, const char* status, const char* reason, const char* message,
               WallTime since, WallTime now) {
  return {{"type", type},
          {"status", status},
          {"reason", reason},
          {"message", message},
          {"lastHeartbeatTime", FormatTime(now)},
          {"lastTransitionTime", FormatTime(since)}};
}

const std::string kServerPrefix = "neuron.amazonaws.com/ultraserver-";
constexpr std::array kServerLabels = {"mode", "server-id-2", "node-id-2", "server-id-4",
                                      "node-id-4"};

// Returns the labels by name without the prefix; those without a value are absent.
std::map<std::string, std::string> ServerLabels(const NodeFacts& facts) {
  if (!facts.election) {
    const std::string& id = facts.ultra_server_id;
    const int place = facts.ultra_server_node;
    // A pair of nodes is joined by its left links: 0 with 1 and 2 with 3
    // (docs/reference/trainium2.md#ultraserver-election).
    return {{"mode", "1_2_4"},
            {"server-id-4", id},
            {"node-id-4", std::to_string(place)},
            {"server-id-2", fmt::format("{}-{}", id, place / 2)},
            {"node-id-2", std::to_string(place % 2)}};
  }
  const wire::UltraServerElection& elected = *facts.election;
  std::map<std::string, std::string> labels = {
      {"mode", elected.running ? "busy" : hw::SizesLabel(elected.modes)}};
  if (!elected.server_id_2.empty()) {
    labels["server-id-2"] = elected.server_id_2;
    labels["node-id-2"] = std::to_string(elected.node_id_2);
  }
  if (!elected.server_id_4.empty()) {
    labels["server-id-4"] = elected.server_id_4;
    labels["node-id-4"] = std::to_string(elected.node_id_4);
  }
  return labels;
}

}  // namespace

std::map<std::string, std::string> NodeLabels(const NodeFacts& facts) {
  std::map<std::string, std::string> labels = {
      {"kubernetes.io/hostname", facts.name},
      {"kubernetes.io/os", "linux"},
      {"kubernetes.io/arch", "amd64"},
      {"node.kubernetes.io/instance-type", facts.instance_type},
  };
  for (std::size_t i = 0; i < facts.network_layers.size(); ++i) {
    labels[fmt::format("topology.k8s.aws/network-node-layer-{}", i + 1)] = facts.network_layers[i];
  }
  if (!facts.capacity_block_id.empty()) {
    labels["topology.k8s.aws/capacity-block-id"] = facts.capacity_block_id;
  }
  if (!facts.ultra_server_id.empty()) {
    labels["topology.k8s.aws/ultraserver-id"] = facts.ultra_server_id;
    for (auto& [name, value] : ServerLabels(facts)) labels[kServerPrefix + name] = value;
  }
  return labels;
}

json LabelPatch(const NodeFacts& facts) {
  json patch = NodeLabels(facts);
  for (const char* name : kServerLabels) {
    if (const std::string label = kServerPrefix + name; !patch.contains(label)) {
      patch[label] = nullptr;
    }
  }
  return patch;
}

json MakeNodeStatus(const NodeFacts& facts, WallTime now) {
  const json resources = {{"cpu", std::to_string(facts.vcpus)},
                          {"memory", fmt::format("{}Ki", facts.memory_bytes / 1024)},
                          {"ephemeral-storage", "500Gi"},
                          {"pods", std::to_string(kMaxPods)}};
  return {{"capacity", resources},
          {"allocatable", resources},
          {"conditions",
           {Condition("MemoryPressure", "False", "KubeletHasSufficientMemory",
                      "kubelet has sufficient memory available", facts.ready_since, now),
            Condition("DiskPressure", "False", "KubeletHasNoDiskPressure",
                      "kubelet has no disk pressure", facts.ready_since, now),
            Condition("PIDPressure", "False", "KubeletHasSufficientPID",
                      "kubelet has sufficient PID available", facts.ready_since, now),
            Condition("Ready", "True", "KubeletReady", "the pod runner is ready", facts.ready_since,
                      now)}},
          {"addresses",
           {{{"type", "InternalIP"}, {"address", facts.address}},
            {{"type", "Hostname"}, {"address", facts.name}}}},
          {"daemonEndpoints", {{"kubeletEndpoint", {{"Port", facts.log_port}}}}},
          {"nodeInfo",
           {{"kubeletVersion", kVersion},
            {"kubeProxyVersion", ""},
            {"containerRuntimeVersion", "tahoma-process://1"},
            {"operatingSystem", "linux"},
            {"architecture", "amd64"},
            {"osImage", "tahoma emulated instance"},
            {"kernelVersion", ""},
            {"machineID", facts.name},
            {"systemUUID", facts.name},
            {"bootID", facts.name}}}};
}

json MakeNode(const NodeFacts& facts, WallTime now) {
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", facts.name}, {"labels", NodeLabels(facts)}}},
          {"spec", {{"providerID", fmt::format("tahoma:///{}", facts.name)}}},
          {"status", MakeNodeStatus(facts, now)}};
}

}  // namespace tahoma::sim

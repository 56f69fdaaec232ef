#include "sim-node/podrunner/node_object.h"

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/node_labels.h"

namespace tahoma::sim {
namespace {

using json = Json;

constexpr std::string_view kVersion = "v1.36.0-tahoma";
constexpr const char* kEfaResource = "vpc.amazonaws.com/efa";

json Condition(const char* type, const char* status, const char* reason, const char* message,
               WallTime since, WallTime now) {
  return {{"type", type},
          {"status", status},
          {"reason", reason},
          {"message", message},
          {"lastHeartbeatTime", FormatTime(now)},
          {"lastTransitionTime", FormatTime(since)}};
}

wire::Inventory InstanceOf(const NodeFacts& facts) {
  wire::Inventory instance = {.instance_type = facts.instance_type,
                              .network_layers = facts.network_layers,
                              .capacity_block_id = facts.capacity_block_id};
  if (!facts.ultra_server_id.empty()) {
    instance.ultra_server = {.id = facts.ultra_server_id,
                             .node_id = facts.ultra_server_node,
                             .election = facts.election};
  }
  return instance;
}

}  // namespace

std::map<std::string, std::string> NodeLabels(const NodeFacts& facts) {
  std::map<std::string, std::string> labels = {{"kubernetes.io/hostname", facts.name},
                                               {"kubernetes.io/os", "linux"},
                                               {"kubernetes.io/arch", "amd64"}};
  for (auto& [name, value] : wire::InstanceLabels(InstanceOf(facts))) {
    if (value) labels[name] = *value;
  }
  return labels;
}

json LabelPatch(const NodeFacts& facts) {
  json patch = NodeLabels(facts);
  for (const auto& [name, value] : wire::InstanceLabels(InstanceOf(facts))) {
    if (!value) patch[name] = nullptr;
  }
  return patch;
}

json MakeNodeStatus(const NodeFacts& facts, WallTime now) {
  json resources = {{"cpu", std::to_string(facts.vcpus)},
                    {"memory", fmt::format("{}Ki", facts.memory_bytes / 1024)},
                    {"ephemeral-storage", "500Gi"},
                    {"pods", std::to_string(kMaxPods)}};
  if (facts.efa_interfaces > 0) resources[kEfaResource] = std::to_string(facts.efa_interfaces);
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

#include "tests/support/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/hw/catalogue.h"

namespace tahoma::controller {
namespace {

constexpr const char* kGroup4[] = {"13713e551cd37c19", "671622785349fddf", "237e3ef7b968b4d3",
                                   "b3d6ce1919d29f8f"};
constexpr const char* kGroup8[] = {"3593812b8066a078", "614e16dab9ba2f1f"};

void Put(Device& device, std::string domain, std::string id, AttributeValue value) {
  device.attributes.push_back({{std::move(domain), std::move(id)}, std::move(value)});
}

Device Base(const FleetNode& node, std::string name, const char* type) {
  Device device;
  device.name = std::move(name);
  Put(device, "neuron.aws.com", "resourceType", std::string(type));
  Put(device, "neuron.aws.com", "instanceType", node.type);
  Put(device, "neuron.aws.com", "neuronDriverVersion", node.driver_version);
  Put(device, "neuron.aws.com", "draDriverVersion", Version{"1.0.0"});
  for (const char* layer : {"networkNodeLayer1", "networkNodeLayer2", "networkNodeLayer3"}) {
    const bool is_shared = !node.top_layer.empty() && layer == kNetworkLayers[0];
    Put(device, "neuron.aws.com", layer,
        is_shared ? node.top_layer : fmt::format("nn-{}-{}", layer, node.name));
  }
  if (node.aws_only) return device;
  device.taints.push_back({.key = "tahoma.dev/managed", .value = ""});
  if (!node.ultra_server.empty()) {
    Put(device, "tahoma.dev", "ultraserverId", node.ultra_server);
    Put(device, "tahoma.dev", "z", std::int64_t{node.z});
    if (node.modes.empty()) return device;
    Put(device, "tahoma.dev", "ultraserverModes", node.modes);
    Put(device, "tahoma.dev", "ultraserverMode", node.mode);
  }
  return device;
}

Device Chip(const FleetNode& node, const hw::InstanceType& type, int chip) {
  Device device = Base(node, fmt::format("neuron-device-{}", chip), "neuron_device");
  Put(device, "neuron.aws.com", "deviceId", std::int64_t{chip});
  if (type.device_groups) {
    Put(device, "resource.aws.com", "devicegroup4_id", std::string(kGroup4[chip / 4]));
    Put(device, "resource.aws.com", "devicegroup8_id", std::string(kGroup8[chip / 8]));
    Put(device, "resource.aws.com", "devicegroup16_id", std::string("821d14afaf11327d"));
  }
  if (node.aws_only) return device;
  Put(device, "tahoma.dev", "x", std::int64_t{chip % 4});
  Put(device, "tahoma.dev", "y", std::int64_t{chip / 4});
  if ((node.broken >> chip & 1) != 0) {
    device.taints.push_back(
        {.key = "tahoma.dev/unhealthy", .value = "hbm", .effect = TaintEffect::kNoExecute});
  }
  const auto index = static_cast<std::size_t>(chip);
  if (index < node.links_down.size() && !node.links_down[index].empty()) {
    Put(device, "tahoma.dev", "linksDown", node.links_down[index]);
  }
  return device;
}

Device Core(const FleetNode& node, int chip, int lnc, int core) {
  Device device =
      Base(node, fmt::format("neuron-core-{}-lnc{}-{}", chip, lnc, core), "neuron_core");
  Put(device, "tahoma.dev", "chip", std::int64_t{chip});
  Put(device, "tahoma.dev", "lnc", std::int64_t{lnc});
  Put(device, "tahoma.dev", "core", std::int64_t{core});
  return device;
}

ClaimSpec Claim(const std::string& name, const char* device_class, const char* class_selector) {
  ClaimSpec claim;
  claim.key = {"default", name + "-claim"};
  claim.uid = "uid-" + name + "-claim";
  DeviceRequest request;
  request.device_class = device_class;
  request.class_selectors = {class_selector};
  ClaimRequest outer;
  outer.name = "neurons";
  outer.alternatives = {request};
  claim.requests = {outer};
  return claim;
}

}  // namespace

NodeFacts NodeFactsOf(const FleetNode& node) {
  const hw::InstanceType& type = *hw::FindInstanceType(node.type);
  NodeFacts facts;
  facts.name = node.name;
  facts.labels = {{"kubernetes.io/hostname", node.name}};
  for (int chip = 0; chip < type.chip_count(); ++chip) {
    facts.devices.push_back(Chip(node, type, chip));
  }
  if (node.aws_only) std::reverse(facts.devices.begin(), facts.devices.end());
  if (!node.ultra_server.empty()) facts.devices.push_back(Base(node, "neuron-node", "neuron_node"));
  for (int chip = 0; chip < type.chip_count() && node.cores && !node.aws_only; ++chip) {
    for (const int lnc : {1, 2}) {
      for (int core = 0; core < 8 / lnc; ++core) {
        facts.devices.push_back(Core(node, chip, lnc, core));
      }
    }
  }
  return facts;
}

void AddUltraServer(ClusterState& state, const std::string& id, bool cores) {
  for (int z = 0; z < 4; ++z) {
    state.PutNode(NodeFactsOf({.name = fmt::format("{}-n{}", id, z),
                               .type = "trn2u.48xlarge",
                               .ultra_server = id,
                               .z = z,
                               .cores = cores}));
  }
}

void Elect(ClusterState& state, const std::string& id, const std::array<std::string, 4>& modes,
           const std::string& chosen) {
  for (int z = 0; z < 4; ++z) {
    state.PutNode(NodeFactsOf({.name = fmt::format("{}-n{}", id, z),
                               .type = "trn2u.48xlarge",
                               .ultra_server = id,
                               .z = z,
                               .cores = false,
                               .modes = modes[static_cast<std::size_t>(z)],
                               .mode = chosen}));
  }
}

ClaimSpec ChipClaim(const std::string& name, std::int64_t count) {
  ClaimSpec claim = Claim(name, "neuron.aws.com", kNeuronClassSelector);
  claim.requests[0].alternatives[0].count = count;
  return claim;
}

ClaimSpec AllClaim(const std::string& name) {
  ClaimSpec claim = ChipClaim(name, 1);
  claim.requests[0].alternatives[0].mode = AllocationMode::kAll;
  return claim;
}

ClaimSpec CoreClaim(const std::string& name, int lnc, std::int64_t count) {
  ClaimSpec claim = Claim(name, "neuroncore.tahoma.dev", kCoreClassSelector);
  claim.requests[0].alternatives[0].count = count;
  claim.requests[0].alternatives[0].selectors = {
      fmt::format("device.attributes['tahoma.dev'].lnc == {}", lnc)};
  return claim;
}

ClaimSpec NodeClaim(const std::string& name) {
  ClaimSpec claim = ChipClaim(name, 1);
  claim.requests[0].alternatives[0].selectors = {
      "device.attributes['neuron.aws.com'].resourceType == 'neuron_node'"};
  return claim;
}

}  // namespace tahoma::controller

#include "dra-plugin/inventory/efa_pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "dra-plugin/inventory/device_groups.h"
#include "lib/driver/efa_nic.h"
#include "lib/hw/catalogue.h"

namespace tahoma::dra {
namespace {

// The PCI device ids of EFA: efa1 is the second version, of trn1 (seen), efa2 the third (assumed).
std::string_view SubsystemOf(const hw::InstanceType& type) {
  return type.name.starts_with("trn1") ? "efa1" : "efa2";
}

Device NicDevice(const hw::InstanceType& type, const hw::EfaNic& nic) {
  Device device;
  device.name = nic.device;
  const auto add = [&](std::string_view name, AttributeValue value) {
    device.attributes.push_back({kube::ParseQualifiedName(name, hw::kEfaDriver), std::move(value)});
  };
  add("numaNode", std::int64_t{nic.numa_node});
  add("pciAddress", nic.address);
  add("pciDevice", std::string("Elastic Fabric Adapter (EFA)"));
  add("pciSubsystem", std::string(SubsystemOf(type)));
  add("pciVendor", std::string("Amazon.com, Inc."));
  add("rdma", true);
  add("rdmaDevice", nic.rdma);
  for (kube::Attribute& group : DeviceGroups(type, nic.chips.front())) {
    device.attributes.push_back(std::move(group));
  }
  return device;
}

void AddTaint(const PoolOptions& options, bool down, Device& device) {
  if (!down && !options.node_lost) return;
  const std::string reason(options.node_lost ? "node-lost" : kEfaDown);
  const auto effect = options.fault_effects.find(reason);
  device.taints.push_back(
      {std::string(kUnhealthyTaint), reason,
       effect == options.fault_effects.end() ? TaintEffect::kNoSchedule : effect->second});
}

}  // namespace

DevicePool BuildEfaPool(const wire::Inventory& inventory, const PoolOptions& options) {
  const hw::InstanceType* type = hw::FindInstanceType(inventory.instance_type);
  std::vector<Device> devices;
  if (type != nullptr) {
    for (const hw::EfaNic& nic : hw::EfaNics(*type)) {
      Device device = NicDevice(*type, nic);
      const bool down = std::ranges::any_of(inventory.chips, [&](const wire::Chip& chip) {
        return chip.efa_down && std::ranges::find(nic.chips, chip.index) != nic.chips.end();
      });
      AddTaint(options, down, device);
      devices.push_back(std::move(device));
    }
  }
  DevicePool pool;
  if (!devices.empty()) pool.groups.push_back(std::move(devices));
  return pool;
}

}  // namespace tahoma::dra

// The part of VirtualNode that does harm: what a node may write that somebody else rules.

#include <string_view>
#include <utility>

#include "dra-plugin/inventory/pool.h"
#include "dra-plugin/slices/slice_json.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "tests/sim/virtual_node.h"

namespace tahoma::simulation {
namespace {

using json = Json;

constexpr std::uint64_t kLies = 5;
// Above all that an honest node reaches.
constexpr std::int64_t kForgedGeneration = 1'000'000'000;

// The devices that one ResourceSlice holds: chips, and the whole node.
std::vector<dra::Device>& ChipsOf(dra::DevicePool& pool) { return pool.groups.front(); }

void Set(dra::Device& device, std::string_view id, dra::AttributeValue value) {
  for (auto& attribute : device.attributes) {
    if (attribute.name.id == id) attribute.value = value;
  }
}

// Makes each chip another of the node's own.
void TurnIds(dra::DevicePool& pool, std::uint64_t by) {
  auto& chips = ChipsOf(pool);
  for (std::size_t i = 0; i < chips.size(); ++i) {
    Set(chips[i], "deviceId", static_cast<std::int64_t>((i + by) % chips.size()));
  }
}

void Move(dra::DevicePool& pool, const std::string& ultra_server, std::int64_t z) {
  for (dra::Device& device : ChipsOf(pool)) {
    for (const char* id : {"z", "ultraserverNodeId"}) Set(device, id, z);
    Set(device, "ultraserverId", ultra_server);
  }
}

// Makes the devices parts of another kind of instance, or whole nodes.
void Disguise(dra::DevicePool& pool, bool as_nodes) {
  for (dra::Device& device : ChipsOf(pool)) {
    if (as_nodes) Set(device, "resourceType", std::string("neuron_node"));
    if (!as_nodes) Set(device, "instanceType", std::string("trn2.3xlarge"));
  }
}

}  // namespace

void VirtualNode::Lie(const NodePlan& other) {
  if (!powered()) return;
  world_.Meet("node lies");
  lied_ = true;
  const absl::StatusOr<wire::Inventory> inventory = port_->GetInventory();
  auto pool = dra::BuildPool(*inventory, {.publish = {.lnc1 = plan_.cores, .lnc2 = plan_.cores}});
  TAHOMA_CHECK_OK(pool.status());
  const std::uint64_t dice = world_.rng.Below(kLies);
  const std::uint64_t number = world_.rng.Below(16);
  if (dice < 2) return Forge(*std::move(pool), dice == 0 ? other.name : plan_.name, number);
  if (dice == 2) TurnIds(*pool, number);
  if (dice == 3) Move(*pool, other.ultra_server, static_cast<std::int64_t>(number % 4));
  if (dice == 4 && number < 4) Disguise(*pool, number % 2 == 0);
  if (dice == 4 && number >= 4) {
    std::erase_if(ChipsOf(*pool), [&](const auto&) { return world_.rng.Chance(1, 2); });
  }
  After(world_.Latency(), Urgency::kNormal,
        [this, pool = *std::move(pool)] { (void)slices_->Publish(pool); });
}

// Posts a slice of that pool with some of the node's devices, as if it were all of it or one of
// seven.
void VirtualNode::Forge(dra::DevicePool pool, const std::string& of, std::uint64_t number) {
  dra::SliceContent content;
  for (dra::Device& device : ChipsOf(pool)) {
    device.consumes.clear();
    if (world_.rng.Chance(2, 3)) content.devices.push_back(std::move(device));
  }
  json slice = dra::SliceObject(
      {.node_name = plan_.name, .node_uid = "forged"},
      {.generation = number % 2 == 0 ? kForgedGeneration : static_cast<std::int64_t>(number),
       .slice_count = number % 4 == 0 ? 7U : 1U},
      content, 0);
  slice["metadata"] = {{"name", fmt::format("forged-{}-{}", plan_.name, world_.rng.Below(1000))}};
  slice["spec"]["pool"]["name"] = of;
  After(world_.Latency(), Urgency::kNormal, [this, slice = std::move(slice)] {
    (void)link_.Send({.method = "POST",
                      .target = "/apis/resource.k8s.io/v1/resourceslices",
                      .headers = {{"Content-Type", "application/json"}},
                      .body = slice.dump()});
  });
}

}  // namespace tahoma::simulation

#include "dra-plugin/inventory/efa_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "dra-plugin/inventory/shown_pool.h"
#include "lib/hw/catalogue.h"

namespace tahoma::dra {
namespace {

using ::testing::IsEmpty;

wire::Inventory InstanceOf(std::string type) {
  wire::Inventory inventory = {.node_name = "node-a", .instance_type = std::move(type)};
  const hw::InstanceType* known = hw::FindInstanceType(inventory.instance_type);
  for (int i = 0; known != nullptr && i < known->chip_count(); ++i) {
    inventory.chips.push_back({.index = i});
  }
  return inventory;
}

const Device& NamedIn(const DevicePool& pool, std::string_view name) {
  return *std::ranges::find(pool.groups.at(0), name, &Device::name);
}

std::map<std::string, std::string> AttributesOf(const Device& device) {
  std::map<std::string, std::string> out;
  for (const Attribute& attribute : device.attributes) {
    const auto* flag = std::get_if<bool>(&attribute.value);
    const auto* number = std::get_if<std::int64_t>(&attribute.value);
    out[attribute.name.domain + "/" + attribute.name.id] =
        flag != nullptr     ? (*flag ? "true" : "false")
        : number != nullptr ? std::to_string(*number)
                            : std::get<std::string>(attribute.value);
  }
  return out;
}

// The device of the captured slice (docs/reference/aws-dra-driver.md#efa), but for pcieRoot.
TEST(EfaPoolTest, ANicOfTrn1IsAsAwssDriverShowsIt) {
  const DevicePool pool = BuildEfaPool(InstanceOf("trn1.32xlarge"), {});
  EXPECT_EQ(pool.groups.at(0).size(), 8u);
  EXPECT_EQ(AttributesOf(NamedIn(pool, "pci-0000-90-19-0")),
            (std::map<std::string, std::string>{
                {"dra.net/numaNode", "1"},
                {"dra.net/pciAddress", "0000:90:19.0"},
                {"dra.net/pciDevice", "Elastic Fabric Adapter (EFA)"},
                {"dra.net/pciSubsystem", "efa1"},
                {"dra.net/pciVendor", "Amazon.com, Inc."},
                {"dra.net/rdma", "true"},
                {"dra.net/rdmaDevice", "rdmap144s25"},
                {"resource.aws.com/devicegroup1_id", "0000:90:19.0"},
                {"resource.aws.com/devicegroup4_id", "69b2225fd72a59dd"},
                {"resource.aws.com/devicegroup8_id", "86c451036f622685"},
                {"resource.aws.com/devicegroup16_id", "fb838249c99a6341"}}));
}

TEST(EfaPoolTest, ANicIsInTheGroupsOfItsChip) {
  const wire::Inventory inventory = InstanceOf("trn2.48xlarge");
  const DevicePool nics = BuildEfaPool(inventory, {});
  const DevicePool chips = *BuildPool(inventory, {});
  ASSERT_EQ(nics.groups.at(0).size(), 16u);
  for (std::size_t i = 0; i < 16; ++i) {
    for (const char* size : {"1", "4", "8", "16"}) {
      const std::string id = std::string("devicegroup") + size + "_id";
      const AttributeValue* of_nic = nics.groups[0][i].Find("resource.aws.com", id);
      ASSERT_NE(of_nic, nullptr);
      EXPECT_EQ(*of_nic, *chips.groups[0][i].Find("resource.aws.com", id));
    }
  }
}

TEST(EfaPoolTest, OnlyNicsThatAreDownAreTaintedAndTheEffectCanBeChosen) {
  wire::Inventory inventory = InstanceOf("trn1.32xlarge");
  inventory.chips[1].efa_down = true;  // chips 0 and 1 share 0000:10:1a.0
  const DevicePool pool = BuildEfaPool(inventory, {});
  for (const Device& device : pool.groups.at(0)) {
    const bool down = device.name == "pci-0000-10-1a-0";
    EXPECT_EQ(UnhealthyReason(device), down ? "efa-down" : "") << device.name;
  }
  EXPECT_EQ(NamedIn(pool, "pci-0000-10-1a-0").taints.at(0).effect, TaintEffect::kNoSchedule);
  const DevicePool strict =
      BuildEfaPool(inventory, {.fault_effects = {{"efa-down", TaintEffect::kNoExecute}}});
  EXPECT_EQ(NamedIn(strict, "pci-0000-10-1a-0").taints.at(0).effect, TaintEffect::kNoExecute);
}

TEST(EfaPoolTest, NicsOfALostNodeAreUnhealthy) {
  const DevicePool pool = BuildEfaPool(InstanceOf("trn2.48xlarge"), {.node_lost = true});
  for (const Device& device : pool.groups.at(0)) EXPECT_EQ(UnhealthyReason(device), "node-lost");
}

TEST(EfaPoolTest, AnInstanceWithoutEfaHasAnEmptyPool) {
  EXPECT_THAT(BuildEfaPool(InstanceOf("inf2.48xlarge"), {}).groups, IsEmpty());
  EXPECT_THAT(BuildEfaPool(InstanceOf("m5.large"), {}).groups, IsEmpty());
}

TEST(EfaPoolTest, EveryServerIsShownAllNics) {
  const DevicePool pool = BuildEfaPool(InstanceOf("trn2.48xlarge"), {});
  for (const auto support :
       {CounterSupport::kApart, CounterSupport::kTogether, CounterSupport::kNone}) {
    EXPECT_EQ(ShownPool(pool, support), pool);
  }
}

}  // namespace
}  // namespace tahoma::dra

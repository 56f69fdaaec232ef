#include "dra-plugin/inventory/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "dra-plugin/inventory/device_groups.h"
#include "dra-plugin/inventory/shown_pool.h"
#include "lib/base/status.h"
#include "lib/driver/device_name.h"
#include "lib/hw/catalogue.h"

namespace tahoma::dra {
namespace {

using ::testing::UnorderedElementsAre;

wire::Inventory Node(std::string type, bool ultra_server = false) {
  wire::Inventory inventory = {.generation = 1,
                               .node_name = "node-a",
                               .instance_type = type,
                               .network_layers = {"nn-1", "nn-2", "nn-3"},
                               .capacity_block_id = "cr-1",
                               .driver_version = "2.26.10.0"};
  if (ultra_server)
    inventory.ultra_server = wire::UltraServer{.id = "us-1", .node_id = 2, .mode = 4};
  for (int i = 0; i < hw::FindInstanceType(type)->chip_count(); ++i) {
    inventory.chips.push_back({.index = i});
  }
  return inventory;
}

// All devices by name.
std::map<std::string, Device> ByName(const DevicePool& pool) {
  std::map<std::string, Device> out;
  for (const auto& group : pool.groups) {
    for (const Device& device : group) EXPECT_TRUE(out.emplace(device.name, device).second);
  }
  return out;
}

std::string Text(const AttributeValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("int {}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) return "string " + *text;
  return "version " + std::get<Version>(value).text;
}

std::map<std::string, std::string> Attributes(const Device& device) {
  std::map<std::string, std::string> out;
  for (const Attribute& attribute : device.attributes) {
    const auto& [domain, id] = attribute.name;
    const std::string name = domain == kDriver ? id : fmt::format("{}/{}", domain, id);
    EXPECT_TRUE(out.emplace(name, Text(attribute.value)).second) << name;
  }
  return out;
}

DevicePool Build(const wire::Inventory& inventory, PoolOptions options = {}) {
  absl::StatusOr<DevicePool> pool = BuildPool(inventory, options);
  EXPECT_TRUE(pool.ok()) << pool.status();
  return *pool;
}

// The captured ResourceSlice of a trn1.32xlarge and the published table
// (docs/reference/aws-dra-driver.md#device-groups).
TEST(DeviceGroupTest, Trn1ValuesOfACapturedSlice) {
  const std::vector<std::string_view> efa = {
      "0000:10:1a.0", "0000:10:1a.0", "0000:a0:1a.0", "0000:a0:1a.0",
      "0000:20:19.0", "0000:20:19.0", "0000:90:19.0", "0000:90:19.0",
      "0000:20:1a.0", "0000:20:1a.0", "0000:90:1a.0", "0000:90:1a.0",
      "0000:10:19.0", "0000:10:19.0", "0000:a0:19.0", "0000:a0:19.0"};
  const auto group = [&](std::size_t size, std::size_t i) {
    return DeviceGroupId({efa.begin() + static_cast<std::ptrdiff_t>(size * i),
                          efa.begin() + static_cast<std::ptrdiff_t>(size * (i + 1))});
  };
  EXPECT_EQ(group(4, 0), "88a3c6ad1661fe1d");
  EXPECT_EQ(group(4, 1), "69b2225fd72a59dd");
  EXPECT_EQ(group(4, 2), "e3c29faa0cd11323");
  EXPECT_EQ(group(4, 3), "178a9e264a26793e");
  EXPECT_EQ(group(8, 0), "86c451036f622685");
  EXPECT_EQ(group(8, 1), "aa86c05423d6e8cd");
  EXPECT_EQ(group(16, 0), "fb838249c99a6341");
}

TEST(PoolTest, AChipOfTrn2HasAwsAttributesWithAwsTypes) {
  const auto devices = ByName(Build(Node("trn2.48xlarge")));
  const std::map<std::string, std::string> expected = {
      {"deviceId", "int 6"},
      {"draDriverVersion", "version " + std::string(kVersion)},
      {"instanceType", "string trn2.48xlarge"},
      {"networkNodeLayer1", "string nn-1"},
      {"networkNodeLayer2", "string nn-2"},
      {"networkNodeLayer3", "string nn-3"},
      {"neuronDriverVersion", "string 2.26.10.0"},
      {"resource.aws.com/devicegroup1_id", "string 0000:56:00.0"},
      {"resource.aws.com/devicegroup4_id", "string 671622785349fddf"},
      {"resource.aws.com/devicegroup8_id", "string 3593812b8066a078"},
      {"resource.aws.com/devicegroup16_id", "string 821d14afaf11327d"},
      {"resourceType", "string neuron_device"},
      {"topology_x", "int 1"},
      {"topology_y", "int 2"},
      {"topology4_id", "int 1"},
      {"topology8_id", "int 0"},
      {"tahoma.dev/x", "int 2"},
      {"tahoma.dev/y", "int 1"}};
  EXPECT_EQ(Attributes(devices.at("neuron-device-6")), expected);
}

TEST(PoolTest, Trn2DeviceGroupsAreTheKnownOnes) {
  const auto devices = ByName(Build(Node("trn2.48xlarge")));
  const std::vector<std::string> fours = {"13713e551cd37c19", "671622785349fddf",
                                          "237e3ef7b968b4d3", "b3d6ce1919d29f8f"};
  const std::vector<std::string> eights = {"3593812b8066a078", "614e16dab9ba2f1f"};
  for (std::size_t i = 0; i < 16; ++i) {
    const auto attributes = Attributes(devices.at(fmt::format("neuron-device-{}", i)));
    EXPECT_EQ(attributes.at("resource.aws.com/devicegroup4_id"), "string " + fours[i / 4]);
    EXPECT_EQ(attributes.at("resource.aws.com/devicegroup8_id"), "string " + eights[i / 8]);
  }
}

TEST(PoolTest, AnUltraServersChipHasPlaceButNoAwsTopology) {
  const auto attributes =
      Attributes(ByName(Build(Node("trn2u.48xlarge", true))).at("neuron-device-13"));
  EXPECT_FALSE(attributes.contains("topology_x"));
  EXPECT_FALSE(attributes.contains("topology8_id"));
  EXPECT_EQ(attributes.at("capacityBlockId"), "string cr-1");
  EXPECT_EQ(attributes.at("tahoma.dev/x"), "int 1");
  EXPECT_EQ(attributes.at("tahoma.dev/y"), "int 3");
  EXPECT_EQ(attributes.at("tahoma.dev/z"), "int 2");
  EXPECT_EQ(attributes.at("tahoma.dev/ultraserverId"), "string us-1");
  EXPECT_EQ(attributes.at("resource.aws.com/devicegroup16_id"), "string 821d14afaf11327d");
}

TEST(PoolTest, TheFirstDeviceOfEachKindSaysWhatAnUltraServerHasElected) {
  using enum hw::UltraServerMode;
  wire::Inventory inventory = Node("trn2u.48xlarge", true);
  inventory.ultra_server->election = wire::UltraServerElection{
      .modes = {kX4, kX2V, kX1}, .mode = kX2V, .server_id_2 = "a1", .server_id_4 = "a0"};
  std::vector<std::string> saying;
  for (const auto& [name, device] : ByName(Build(inventory))) {
    const auto attributes = Attributes(device);
    if (!attributes.contains("tahoma.dev/ultraserverModes")) continue;
    saying.push_back(name);
    EXPECT_EQ(attributes.at("tahoma.dev/ultraserverModes"), "string X4,X2V,X1");
    EXPECT_EQ(attributes.at("tahoma.dev/ultraserverMode"), "string X2V");
    EXPECT_EQ(attributes.at("tahoma.dev/ultraserverServerId2"), "string a1");
    EXPECT_EQ(attributes.at("tahoma.dev/ultraserverServerId4"), "string a0");
    EXPECT_LE(attributes.size(), 32U) << "resource/v1: attributes and capacities of a device";
  }
  EXPECT_THAT(saying, UnorderedElementsAre("neuron-device-0", "neuron-node", "neuron-core-0-lnc1-0",
                                           "neuron-core-0-lnc2-0"));
}

// Whatever a node publishes, and whatever a server without counters is not shown of it.
TEST(PoolTest, SomeShownDeviceHasTheElection) {
  wire::Inventory inventory = Node("trn2u.48xlarge", true);
  inventory.ultra_server->election = wire::UltraServerElection{.modes = {hw::UltraServerMode::kX1}};
  for (unsigned which = 1; which < 16; ++which) {
    const Publish publish = {.chips = (which & 1U) != 0,
                             .lnc1 = (which & 2U) != 0,
                             .lnc2 = (which & 4U) != 0,
                             .node = (which & 8U) != 0};
    for (const CounterSupport support :
         {CounterSupport::kApart, CounterSupport::kTogether, CounterSupport::kNone}) {
      int saying = 0;
      for (const auto& [name, device] :
           ByName(ShownPool(Build(inventory, {.publish = publish}), support))) {
        saying += Attributes(device).contains("tahoma.dev/ultraserverModes") ? 1 : 0;
      }
      EXPECT_GE(saying, 1) << which << ", " << static_cast<int>(support);
    }
  }
}

TEST(PoolTest, AttributesAreUnsetWhileNoUltraServerIsElected) {
  wire::Inventory inventory = Node("trn2u.48xlarge", true);
  const auto elected = [&] {
    std::string all;
    for (const auto& [name, value] : Attributes(ByName(Build(inventory)).at("neuron-node"))) {
      const bool is_id = name.ends_with("erverId") || name.ends_with("NodeId");
      if (name.starts_with("tahoma.dev/ultraserver") && !is_id) all += value.substr(7) + " ";
    }
    return all;
  };
  const std::string nobody = "0000000000000000 0000000000000000 ";
  EXPECT_EQ(elected(), "") << "no election";
  inventory.ultra_server->election = wire::UltraServerElection{.running = true};
  EXPECT_EQ(elected(), "unset busy " + nobody);
  inventory.ultra_server->election = wire::UltraServerElection{.modes = {hw::UltraServerMode::kX1}};
  EXPECT_EQ(elected(), "unset X1 " + nobody);
}

TEST(PoolTest, ASmallInstanceHasNeitherTopologyNorDeviceGroups) {
  const DevicePool pool = Build(Node("trn2.3xlarge"));
  const auto attributes = Attributes(ByName(pool).at("neuron-device-0"));
  for (const auto& [name, value] : attributes) {
    EXPECT_FALSE(name.starts_with("topology") || name.starts_with("resource.aws.com/")) << name;
  }
  EXPECT_EQ(ByName(pool).size(), 1u + 4u + 8u);
  EXPECT_EQ(pool.counter_sets.size(), 2u);
}

TEST(PoolTest, OnlyMembersOfAnUltraServerPublishTheWholeNode) {
  EXPECT_FALSE(ByName(Build(Node("trn2.48xlarge"))).contains("neuron-node"));
  const auto devices = ByName(Build(Node("trn2u.48xlarge", true)));
  const auto attributes = Attributes(devices.at("neuron-node"));
  EXPECT_EQ(attributes.at("resourceType"), "string neuron_node");
  EXPECT_FALSE(attributes.contains("deviceId"));
  EXPECT_EQ(devices.at("neuron-node").consumes.at(0).counters.size(), 16u);
}

TEST(PoolTest, CoresSayWhereTheyAre) {
  const auto devices = ByName(Build(Node("trn2.48xlarge")));
  const Device& core = devices.at("neuron-core-13-lnc2-3");
  const auto attributes = Attributes(core);
  EXPECT_EQ(attributes.at("resourceType"), "string neuron_core");
  EXPECT_EQ(attributes.at("tahoma.dev/chip"), "int 13");
  EXPECT_EQ(attributes.at("tahoma.dev/lnc"), "int 2");
  EXPECT_EQ(attributes.at("tahoma.dev/core"), "int 3");
  EXPECT_EQ(attributes.at("tahoma.dev/hbmBank"), "int 3");
  EXPECT_FALSE(attributes.contains("draDriverVersion"));
  const std::vector<CounterSet> expected = {{"node", {{"chip-13", 2}}},
                                            {"phys-3", {{"core-14", 1}, {"core-15", 1}}}};
  EXPECT_EQ(core.consumes, expected);
}

// The slow oracle: two devices overlap exactly when they hold a common physical core.
std::set<int> PhysicalCores(const std::string& text) {
  const hw::DeviceName name = *hw::ParseDeviceName(text);
  std::set<int> out;
  for (int core = 0; core < 128; ++core) {
    const bool held = name.kind == hw::DeviceKind::kNode ||
                      (core / 8 == name.chip &&
                       (name.kind == hw::DeviceKind::kChip || core % 8 / name.lnc == name.core));
    if (held) out.insert(core);
  }
  return out;
}

// Whether the counters let both be allocated.
bool CountersAllow(const DevicePool& pool, const Device& a, const Device& b) {
  std::map<std::string, std::int64_t> left;
  for (const CounterSet& set : pool.counter_sets) {
    for (const Counter& counter : set.counters) left[set.name + "/" + counter.name] = counter.value;
  }
  for (const Device* device : {&a, &b}) {
    for (const CounterSet& set : device->consumes) {
      for (const Counter& counter : set.counters) {
        if ((left.at(set.name + "/" + counter.name) -= counter.value) < 0) return false;
      }
    }
  }
  return true;
}

TEST(PoolTest, CountersExcludeExactlyWhatOverlaps) {
  const DevicePool pool = Build(Node("trn2u.48xlarge", true));
  const auto devices = ByName(pool);
  ASSERT_EQ(devices.size(), 16u + 1u + 64u + 128u);
  std::map<std::string, std::set<int>> cores;
  for (const auto& [name, device] : devices) cores[name] = PhysicalCores(name);
  int checked = 0;
  for (const auto& [a, a_device] : devices) {
    for (const auto& [b, b_device] : devices) {
      if (a >= b || (checked++ % 7) != 0) continue;  // a seventh of the pairs suffices
      bool overlap = false;
      for (const int core : cores.at(a)) overlap = overlap || cores.at(b).contains(core);
      EXPECT_EQ(CountersAllow(pool, a_device, b_device), !overlap) << a << " and " << b;
    }
  }
}

TEST(PoolTest, KubernetesLimitsHold) {
  const DevicePool pool = Build(Node("trn2u.48xlarge", true));
  const auto slices = CutIntoSlices(pool);
  ASSERT_EQ(slices.size(), 5u) << "counters, 17 chips and node, 64 LNC 2, 128 LNC 1 in two";
  for (const SliceContent& slice : slices) {
    EXPECT_TRUE(slice.devices.empty() || slice.counter_sets.empty());
    EXPECT_LE(slice.devices.size(), 64u);
    EXPECT_LE(slice.counter_sets.size(), 8u);
    for (const CounterSet& set : slice.counter_sets) EXPECT_LE(set.counters.size(), 32u);
    for (const Device& device : slice.devices) {
      EXPECT_LE(device.attributes.size(), 32u);
      EXPECT_LE(device.consumes.size(), 2u);
      for (const CounterSet& set : device.consumes) EXPECT_LE(set.counters.size(), 32u);
      for (const auto& [name, value] : Attributes(device)) EXPECT_LE(value.size(), 71u) << name;
    }
  }
}

TEST(PoolTest, DevicesComeInTheOrderOfTheirIds) {
  const DevicePool pool = Build(Node("trn2.48xlarge"));
  ASSERT_EQ(pool.groups.size(), 3u);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(pool.groups[0][i].name, fmt::format("neuron-device-{}", i));
  }
  EXPECT_EQ(pool.groups[1][5].name, "neuron-core-1-lnc2-1");
  EXPECT_EQ(pool.groups[2][9].name, "neuron-core-1-lnc1-1");
}

TEST(PoolTest, EveryDeviceIsOurs) {
  for (const auto& [name, device] : ByName(Build(Node("trn2u.48xlarge", true)))) {
    ASSERT_EQ(device.taints.size(), 1u) << name;
    EXPECT_EQ(device.taints[0], (Taint{"tahoma.dev/managed", "", TaintEffect::kNoSchedule}));
  }
}

TEST(PoolTest, WhereKubeSchedulerGivesDevicesAwayTheyAreNotReserved) {
  const auto pool = BuildPool(Node("trn2u.48xlarge", true), {.managed_taint = false});
  ASSERT_TRUE(pool.ok()) << pool.status();
  for (const auto& [name, device] : ByName(*pool)) EXPECT_TRUE(device.taints.empty()) << name;
}

TEST(PoolTest, ABrokenChipTaintsItselfItsCoresAndTheNode) {
  wire::Inventory inventory = Node("trn2u.48xlarge", true);
  inventory.chips[3].healthy = false;
  inventory.chips[3].reason = "hbm-uncorrectable";
  const Taint expected = {"tahoma.dev/unhealthy", "hbm-uncorrectable", TaintEffect::kNoExecute};
  int tainted = 0;
  for (const auto& [name, device] : ByName(Build(inventory))) {
    const hw::DeviceName parsed = *hw::ParseDeviceName(name);
    const bool hit = parsed.kind == hw::DeviceKind::kNode || parsed.chip == 3;
    EXPECT_EQ(device.taints.size(), hit ? 2u : 1u) << name;
    if (hit) {
      EXPECT_EQ(device.taints.back(), expected);
    }
    tainted += hit ? 1 : 0;
  }
  EXPECT_EQ(tainted, 1 + 1 + 4 + 8);
}

TEST(PoolTest, ABrokenLinkIsAnAttributeAndNoTaint) {
  wire::Inventory inventory = Node("trn2.48xlarge");
  inventory.chips[0].links_down = {"x+", "y-"};
  const auto devices = ByName(Build(inventory));
  EXPECT_EQ(Attributes(devices.at("neuron-device-0")).at("tahoma.dev/linksDown"), "string x+,y-");
  EXPECT_FALSE(Attributes(devices.at("neuron-device-1")).contains("tahoma.dev/linksDown"));
  EXPECT_EQ(devices.at("neuron-device-0").taints.size(), 1u);
}

TEST(PoolTest, ALostNodeTaintsEverything) {
  for (const auto& [name, device] : ByName(Build(Node("trn2.48xlarge"), {.node_lost = true}))) {
    EXPECT_EQ(device.taints.at(1),
              (Taint{"tahoma.dev/unhealthy", "node-lost", TaintEffect::kNoExecute}));
  }
}

TEST(PoolTest, OnlyWhatIsAskedForIsPublished) {
  const wire::Inventory inventory = Node("trn2u.48xlarge", true);
  const DevicePool chips =
      Build(inventory, {.publish = {.chips = true, .lnc1 = false, .lnc2 = false, .node = false}});
  EXPECT_EQ(ByName(chips).size(), 16u);
  EXPECT_TRUE(chips.counter_sets.empty()) << "nothing overlaps";
  EXPECT_TRUE(chips.groups[0][0].consumes.empty());
  EXPECT_EQ(CutIntoSlices(chips).size(), 1u);
  const DevicePool lnc2 =
      Build(inventory, {.publish = {.chips = false, .lnc1 = false, .lnc2 = true, .node = false}});
  EXPECT_EQ(ByName(lnc2).size(), 64u);
  EXPECT_EQ(CutIntoSlices(lnc2).size(), 2u);
  const DevicePool nothing =
      Build(Node("trn2.48xlarge"),
            {.publish = {.chips = false, .lnc1 = false, .lnc2 = false, .node = true}});
  EXPECT_EQ(CutIntoSlices(nothing), std::vector<SliceContent>(1)) << "one empty slice, not none";
}

TEST(PoolTest, PublishWordsAreChecked) {
  EXPECT_EQ(*ParsePublish({"lnc1", "chips"}), (Publish{true, true, false, false}));
  const auto why = [](std::vector<std::string> words) {
    return std::string(Message(ParsePublish(words).status()));
  };
  EXPECT_EQ(why({"cores"}), "publish: \"cores\" is unknown; expected chips, lnc1, lnc2 or node");
  EXPECT_EQ(why({"chips", "chips"}), "publish: \"chips\" is given twice");
  EXPECT_EQ(why({}), "publish: the list is empty; expected some of chips, lnc1, lnc2, node");
}

// The group ids that a capture of AWS's driver on a trn1.32xlarge shows
// (docs/reference/aws-dra-driver.md#device-groups).
TEST(PoolTest, ATrn1HasAwsGroupsOfSharedEfaDevices) {
  const auto devices = ByName(Build(Node("trn1.32xlarge")));
  const std::vector<std::string> fours = {"88a3c6ad1661fe1d", "69b2225fd72a59dd",
                                          "e3c29faa0cd11323", "178a9e264a26793e"};
  const std::vector<std::string> eights = {"86c451036f622685", "aa86c05423d6e8cd"};
  for (std::size_t i = 0; i < 16; ++i) {
    const auto attributes = Attributes(devices.at(fmt::format("neuron-device-{}", i)));
    EXPECT_EQ(attributes.at("resource.aws.com/devicegroup4_id"), "string " + fours[i / 4]);
    EXPECT_EQ(attributes.at("resource.aws.com/devicegroup8_id"), "string " + eights[i / 8]);
    EXPECT_EQ(attributes.at("resource.aws.com/devicegroup16_id"), "string fb838249c99a6341");
    EXPECT_EQ(attributes.at("topology_x"), fmt::format("int {}", i / 4));
  }
  EXPECT_EQ(Attributes(devices.at("neuron-device-3")).at("resource.aws.com/devicegroup1_id"),
            "string 0000:a0:1a.0");
}

TEST(PoolTest, ChipsOfTwoCoresHaveTwoPartitionsAndNoLnc2) {
  const DevicePool pool = Build(Node("trn1.32xlarge"));
  const auto devices = ByName(pool);
  EXPECT_EQ(devices.size(), 16U + 32U);
  EXPECT_TRUE(devices.contains("neuron-core-15-lnc1-1"));
  EXPECT_FALSE(devices.contains("neuron-core-0-lnc1-2"));
  EXPECT_FALSE(devices.contains("neuron-core-0-lnc2-0"));
  ASSERT_EQ(pool.counter_sets.size(), 2U) << "32 cores fill one set";
  EXPECT_EQ(pool.counter_sets[0].counters[0], (Counter{.name = "chip-0", .value = 2}));
  EXPECT_EQ(pool.counter_sets[1].counters.size(), 32U);
  const Device& last = devices.at("neuron-core-15-lnc1-1");
  EXPECT_EQ(last.consumes[1].counters[0].name, "core-31");
  EXPECT_EQ(devices.at("neuron-device-7").consumes[0].counters[0],
            (Counter{.name = "chip-7", .value = 2}));
}

TEST(PoolTest, ARingHasPlacesButNoRowsAndGroups) {
  const DevicePool pool = Build(Node("inf2.48xlarge"));
  const auto devices = ByName(pool);
  EXPECT_EQ(devices.size(), 12U + 24U);
  const auto attributes = Attributes(devices.at("neuron-device-11"));
  EXPECT_EQ(attributes.at("tahoma.dev/x"), "int 11");
  EXPECT_EQ(attributes.at("tahoma.dev/y"), "int 0");
  for (const auto& [name, value] : attributes) {
    EXPECT_FALSE(name.starts_with("topology") || name.starts_with("resource.aws.com/")) << name;
  }
}

// Whatever is in the catalogue can be published: nothing beyond the limits of resource/v1, and no
// device takes a counter that does not exist.
TEST(PoolTest, EveryInstanceTypeMakesALegalPool) {
  for (const hw::InstanceType& type : hw::InstanceTypes()) {
    const DevicePool pool = Build(Node(std::string(type.name)));
    std::map<std::string, std::map<std::string, std::int64_t>> counters;
    EXPECT_LE(pool.counter_sets.size(), kMaxCounterSetsPerSlice) << type.name;
    for (const CounterSet& set : pool.counter_sets) {
      EXPECT_LE(set.counters.size(), kMaxCountersPerSet) << type.name;
      for (const Counter& counter : set.counters) counters[set.name][counter.name] = counter.value;
    }
    for (const auto& [name, device] : ByName(pool)) {
      for (const CounterSet& taken : device.consumes) {
        for (const Counter& counter : taken.counters) {
          ASSERT_TRUE(counters[taken.name].contains(counter.name)) << type.name << " " << name;
          EXPECT_LE(counter.value, counters[taken.name][counter.name]) << type.name << " " << name;
        }
      }
    }
  }
}

TEST(PoolTest, AnInventoryThatCannotBeIsRefused) {
  wire::Inventory inventory = Node("trn2.48xlarge");
  inventory.chips.pop_back();
  EXPECT_EQ(
      Message(BuildPool(inventory, {}).status()),
      "node node-a reports 15 chips; a trn2.48xlarge has chips 0 to 15, broken ones included");
  inventory.instance_type = "p5.48xlarge";
  EXPECT_EQ(Message(BuildPool(inventory, {}).status()),
            "node node-a: instance type \"p5.48xlarge\" is unknown; expected one of " +
                hw::InstanceTypeNames());
}

std::vector<Taint> UnhealthyTaints(const Device& device) {
  std::vector<Taint> out;
  for (const Taint& taint : device.taints) {
    if (taint.key == kUnhealthyTaint) out.push_back(taint);
  }
  return out;
}

TEST(PoolTest, WhatAFaultDoesIsConfigured) {
  wire::Inventory inventory = Node("trn2.48xlarge");
  inventory.chips[0].healthy = inventory.chips[1].healthy = false;
  inventory.chips[0].reason = "hbm-uncorrectable";
  inventory.chips[1].reason = "dead";
  inventory.chips[2].links_down = {"x+"};
  const auto effects =
      ParseFaultEffects({{"hbm-uncorrectable", "NoSchedule"}, {"dead", "NoExecute"}});
  ASSERT_TRUE(effects.ok()) << effects.status();
  auto devices = ByName(Build(inventory, {.fault_effects = *effects}));
  const std::vector<Taint> drains = {
      {"tahoma.dev/unhealthy", "hbm-uncorrectable", TaintEffect::kNoSchedule}};
  EXPECT_EQ(UnhealthyTaints(devices.at("neuron-device-0")), drains);
  EXPECT_EQ(UnhealthyTaints(devices.at("neuron-core-0-lnc2-1")), drains);
  EXPECT_EQ(UnhealthyTaints(devices.at("neuron-device-1")),
            (std::vector<Taint>{{"tahoma.dev/unhealthy", "dead", TaintEffect::kNoExecute}}));
  EXPECT_EQ(UnhealthyTaints(devices.at("neuron-device-2")), std::vector<Taint>{});
  devices = ByName(Build(inventory, {.fault_effects = {{"link-down", TaintEffect::kNoSchedule}}}));
  EXPECT_EQ(UnhealthyTaints(devices.at("neuron-device-2")),
            (std::vector<Taint>{{"tahoma.dev/unhealthy", "link-down", TaintEffect::kNoSchedule}}));
  EXPECT_EQ(UnhealthyTaints(devices.at("neuron-device-3")), std::vector<Taint>{});
}

TEST(PoolTest, FaultEffectsOfOtherWordsAreRefused) {
  EXPECT_EQ(Message(ParseFaultEffects({{"hbm", "NoSchedule"}}).status()),
            "faultEffects: the reason \"hbm\" is unknown; expected one of sram-uncorrectable, "
            "nc-uncorrectable, hbm-uncorrectable, dma, dead, unknown, node-lost, link-down, "
            "efa-down");
  EXPECT_EQ(Message(ParseFaultEffects({{"dma", "Evict"}}).status()),
            "faultEffects: dma is \"Evict\"; expected NoSchedule or NoExecute");
}

}  // namespace
}  // namespace tahoma::dra

// Tests that no allocator can give a core of a shown pool away twice, with any support of counters.
// The judge knows devices by their names alone, as docs/design/0001-seams.md defines names.

#include "dra-plugin/inventory/shown_pool.h"

#include <gtest/gtest.h>

#include <bitset>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tahoma::dra {
namespace {

constexpr int kCores = 128;
constexpr int kCoresPerChip = 8;

wire::Inventory Node(bool ultra_server) {
  wire::Inventory inventory = {.generation = 1,
                               .node_name = "node-a",
                               .instance_type = ultra_server ? "trn2u.48xlarge" : "trn2.48xlarge"};
  if (ultra_server) inventory.ultra_server = wire::UltraServer{.id = "us-1", .node_id = 1};
  for (int i = 0; i < 16; ++i) inventory.chips.push_back({.index = i});
  return inventory;
}

// The physical cores of a device: "neuron-device-3", "neuron-core-3-lnc2-1", "neuron-node".
std::bitset<kCores> CoresOf(const std::string& name) {
  std::bitset<kCores> cores;
  int chip = 0;
  int lnc = 0;
  int core = 0;
  if (name == "neuron-node") {
    cores.set();
  } else if (std::sscanf(name.c_str(), "neuron-core-%d-lnc%d-%d", &chip, &lnc, &core) == 3) {
    for (int i = 0; i < lnc; ++i) {
      cores.set(static_cast<std::size_t>(chip * kCoresPerChip + core * lnc + i));
    }
  } else if (std::sscanf(name.c_str(), "neuron-device-%d", &chip) == 1) {
    for (int i = 0; i < kCoresPerChip; ++i) {
      cores.set(static_cast<std::size_t>(chip * kCoresPerChip + i));
    }
  }
  EXPECT_TRUE(cores.any()) << name;
  return cores;
}

using Counters = std::map<std::pair<std::string, std::string>, std::int64_t>;

// Whether the shown counters of the pool let both devices be given away.
bool BothFit(const DevicePool& pool, const Device& a, const Device& b) {
  Counters left;
  for (const CounterSet& set : pool.counter_sets) {
    for (const Counter& counter : set.counters) left[{set.name, counter.name}] = counter.value;
  }
  for (const Device* device : {&a, &b}) {
    for (const CounterSet& set : device->consumes) {
      for (const Counter& counter : set.counters) {
        EXPECT_TRUE(left.contains({set.name, counter.name})) << "a counter that is not shown";
        left[{set.name, counter.name}] -= counter.value;
      }
    }
  }
  for (const auto& [name, value] : left) {
    if (value < 0) return false;
  }
  return true;
}

std::vector<Device> Devices(const DevicePool& pool) {
  std::vector<Device> all;
  for (const auto& group : pool.groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

std::vector<Publish> EveryChoice() {
  std::vector<Publish> choices;
  for (unsigned bits = 1; bits < 16; ++bits) {
    choices.push_back({.chips = (bits & 1U) != 0,
                       .lnc1 = (bits & 2U) != 0,
                       .lnc2 = (bits & 4U) != 0,
                       .node = (bits & 8U) != 0});
  }
  return choices;
}

class ShownPoolTest : public ::testing::TestWithParam<std::tuple<CounterSupport, bool>> {};

INSTANTIATE_TEST_SUITE_P(All, ShownPoolTest,
                         ::testing::Combine(::testing::Values(CounterSupport::kApart,
                                                              CounterSupport::kTogether,
                                                              CounterSupport::kNone),
                                            ::testing::Bool()));

TEST_P(ShownPoolTest, DevicesThatOverlapNeverFitTogether) {
  const auto [support, ultra_server] = GetParam();
  for (const Publish& publish : EveryChoice()) {
    const DevicePool pool =
        ShownPool(*BuildPool(Node(ultra_server), {.publish = publish}), support);
    const std::vector<Device> devices = Devices(pool);
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const std::bitset<kCores> cores = CoresOf(devices[i].name);
      for (std::size_t k = i + 1; k < devices.size(); ++k) {
        if ((cores & CoresOf(devices[k].name)).none()) continue;
        ASSERT_FALSE(BothFit(pool, devices[i], devices[k]))
            << devices[i].name << " and " << devices[k].name;
      }
    }
  }
}

TEST_P(ShownPoolTest, WhatIsToBeShownIsNotEmptyAndCoversTheNode) {
  const auto [support, ultra_server] = GetParam();
  for (const Publish& publish : EveryChoice()) {
    const DevicePool whole = *BuildPool(Node(ultra_server), {.publish = publish});
    if (Devices(whole).empty()) continue;  // a node outside an UltraServer has no device "node"
    std::bitset<kCores> covered;
    for (const Device& device : Devices(ShownPool(whole, support))) covered |= CoresOf(device.name);
    EXPECT_TRUE(covered.all());
  }
}

TEST_P(ShownPoolTest, SlicesKeepTheLimitsOfTheirRelease) {
  const auto [support, ultra_server] = GetParam();
  for (const Publish& publish : EveryChoice()) {
    const auto slices =
        CutIntoSlices(ShownPool(*BuildPool(Node(ultra_server), {.publish = publish}), support));
    const bool together = support == CounterSupport::kTogether;
    EXPECT_TRUE(!together || slices.size() == 1);
    for (const SliceContent& slice : slices) {
      std::size_t counters = 0;
      for (const CounterSet& set : slice.counter_sets) counters += set.counters.size();
      EXPECT_LE(slice.devices.size(), together ? 128u : 64u);
      EXPECT_TRUE(!together || counters <= 32) << counters;
      EXPECT_TRUE(together || slice.counter_sets.empty() || slice.devices.empty());
    }
  }
}

// The kinds of the pool's devices, told by their names.
Publish KindsIn(const DevicePool& pool) {
  Publish kinds = {.chips = false, .lnc1 = false, .lnc2 = false, .node = false};
  for (const Device& device : Devices(pool)) {
    kinds.chips |= device.name.find("-device-") != std::string::npos;
    kinds.lnc1 |= device.name.find("-lnc1-") != std::string::npos;
    kinds.lnc2 |= device.name.find("-lnc2-") != std::string::npos;
    kinds.node |= device.name == "neuron-node";
  }
  return kinds;
}

TEST_P(ShownPoolTest, LeftOutNamesThePoolsKindsThatAreNotShown) {
  const auto [support, ultra_server] = GetParam();
  for (const Publish& publish : EveryChoice()) {
    const DevicePool pool = *BuildPool(Node(ultra_server), {.publish = publish});
    const Publish all = KindsIn(pool);
    const Publish shown = KindsIn(ShownPool(pool, support));
    const Publish left_out = LeftOut(pool, support);
    EXPECT_FALSE(left_out.chips);
    EXPECT_EQ(left_out.lnc1, all.lnc1 && !shown.lnc1);
    EXPECT_EQ(left_out.lnc2, all.lnc2 && !shown.lnc2);
    EXPECT_EQ(left_out.node, all.node && !shown.node);
  }
}

TEST(ShownPoolTest, WhereCountersAreApartNothingIsLeftOut) {
  const DevicePool pool = *BuildPool(Node(true), {});
  EXPECT_EQ(ShownPool(pool, CounterSupport::kApart), pool);
}

TEST(ShownPoolTest, WithoutCountersChipsGoFirstAndThenTheLargerCores) {
  const auto first_device = [](Publish publish) {
    return Devices(ShownPool(*BuildPool(Node(true), {.publish = publish}), CounterSupport::kNone))
        .front()
        .name;
  };
  EXPECT_EQ(first_device({}), "neuron-device-0");
  EXPECT_EQ(first_device({.chips = false}), "neuron-core-0-lnc2-0");
  EXPECT_EQ(first_device({.chips = false, .lnc2 = false}), "neuron-core-0-lnc1-0");
  EXPECT_EQ(first_device({.chips = false, .lnc1 = false, .lnc2 = false}), "neuron-node");
}

}  // namespace
}  // namespace tahoma::dra

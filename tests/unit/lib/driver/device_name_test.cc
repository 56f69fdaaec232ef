#include "lib/driver/device_name.h"

#include <gtest/gtest.h>

#include "lib/base/rng.h"

namespace tahoma::hw {
namespace {

TEST(DeviceNameTest, EveryDeviceOfANodeComesBackAsItWas) {
  std::vector<DeviceName> names = {{.kind = DeviceKind::kNode}};
  for (int chip = 0; chip < 16; ++chip) {
    names.push_back({.kind = DeviceKind::kChip, .chip = chip});
    for (const int lnc : {1, 2}) {
      for (int core = 0; core < 8 / lnc; ++core) {
        names.push_back({.kind = DeviceKind::kCore, .chip = chip, .lnc = lnc, .core = core});
      }
    }
  }
  EXPECT_EQ(names.size(), 1u + 16u + 64u + 128u);
  for (const DeviceName& name : names) {
    const auto back = ParseDeviceName(ToString(name));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, name);
  }
  EXPECT_EQ(ToString(names.back()), "neuron-core-15-lnc2-3");
}

TEST(DeviceNameTest, AnythingElseIsRefused) {
  for (const char* text :
       {"", "neuron-device-", "neuron-device-16", "neuron-device-01", "neuron-device-+1",
        "neuron-device--1", "neuron-device-1x", "neuron-nodes", "neuron-core-1-lnc0-0",
        "neuron-core-1-lnc3-0", "neuron-core-1-lnc2-4", "neuron-core-1-lnc1-8", "neuron-core-1",
        "neurondevice2", "neuron-device-99999999999999999999"}) {
    EXPECT_FALSE(ParseDeviceName(text).ok()) << text;
  }
}

TEST(DeviceNameTest, AnAcceptedNameHasOneSpelling) {
  Rng rng(1);
  constexpr std::string_view kBytes = "neurodvicla-0123456789";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = rng.Chance(1, 2) ? "neuron-core-11-lnc2-3" : "neuron-device-12";
    text[rng.Below(text.size())] = kBytes[rng.Below(kBytes.size())];
    const auto parsed = ParseDeviceName(text);
    if (!parsed.ok()) continue;
    EXPECT_EQ(ToString(*parsed), text);
  }
}

}  // namespace
}  // namespace tahoma::hw

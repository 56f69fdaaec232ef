#include "lib/kube/objects/device_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/kube/objects/slice.h"

namespace tahoma::kube {
namespace {

constexpr std::string_view kDriver = "neuron.aws.com";

const std::string& Text() {
  static const std::string text = R"([{"name":"neuron-device-0","attributes":{
      "deviceId":{"int":0},"draDriverVersion":{"version":"1.0.0"},"efa":{"bool":true},
      "instanceType":{"string":"trn2u.48xlarge"},"other.example.com/x":{"string":""},
      "tahoma.dev/z":{"int":-3}},"capacity":{"memory":{"value":"96Gi"}},
    "consumesCounters":[{"counterSet":"node","counters":{"chip-0":{"value":"8"}}}],
    "taints":[{"key":"tahoma.dev/managed","effect":"NoSchedule","timeAdded":"2026-11-21T10:00:00Z"},
      {"key":"tahoma.dev/unhealthy","value":"hbm","effect":"NoExecute"}]},
    {"allowMultipleAllocations":true,"name":"neuron-device-1"},
    {"name":"x","attributes":{},"taints":[]}])";
  return text;
}

// The devices by ParseDevice; nullopt when they have a mistake.
std::optional<std::vector<Device>> Parsed(std::string_view text) {
  const Json list = TryParseJson(text);
  if (!list.is_array()) return std::nullopt;
  Reading reading(list);
  std::vector<Device> devices;
  for (const Field device : reading.root().Items()) devices.push_back(ParseDevice(device, kDriver));
  if (!reading.status().ok()) return std::nullopt;
  return devices;
}

void ExpectSame(const std::vector<Device>& a, const std::vector<Device>& b,
                const std::string& text) {
  ASSERT_EQ(a.size(), b.size()) << text;
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name) << text;
    EXPECT_EQ(a[i].attributes, b[i].attributes) << text;
    EXPECT_EQ(a[i].taints, b[i].taints) << text;
    EXPECT_EQ(a[i].allow_multiple_allocations, b[i].allow_multiple_allocations) << text;
    ASSERT_EQ(a[i].capacities.size(), b[i].capacities.size()) << text;
    for (std::size_t j = 0; j < a[i].capacities.size(); ++j) {
      EXPECT_EQ(a[i].capacities[j].name, b[i].capacities[j].name) << text;
      EXPECT_EQ(a[i].capacities[j].quantity, b[i].capacities[j].quantity) << text;
    }
  }
}

TEST(ReadDevicesTest, ReadsWhatParseDeviceReads) {
  const auto read = ReadDevices(Text(), kDriver);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->size(), 3U);
  ExpectSame(*read, *Parsed(Text()), Text());
}

TEST(ReadDevicesTest, AChangedTextIsReadAsParseDeviceReadsItOrNotAtAll) {
  Rng rng(1);
  int good = 0;
  for (int i = 0; i < 30'000; ++i) {
    std::string text = Text();
    for (std::uint64_t changes = 1 + rng.Below(3); changes > 0; --changes) {
      const std::size_t at = rng.Below(text.size());
      constexpr std::string_view kBytes = "\"\\{}[],: 0ae-\xc3/";
      if (rng.Chance(1, 2)) {
        text[at] = kBytes[rng.Below(kBytes.size())];
      } else if (rng.Chance(1, 2)) {
        text.erase(at, 1 + rng.Below(20));
      } else {
        text.insert(at, text.substr(rng.Below(text.size()), rng.Below(40)));
      }
    }
    const auto read = ReadDevices(text, kDriver);
    const auto parsed = Parsed(text);
    if (!read || !parsed) continue;  // a skipped value may be no JSON
    ++good;
    ExpectSame(*read, *parsed, text);
  }
  EXPECT_GT(good, 1'000);
}

TEST(ReadDevicesTest, WhatOnlyParseDeviceUnderstandsIsNotRead) {
  for (const char* text : {
           "null",
           "{}",
           "[{}]",
           R"([{"name":""}])",
           R"([{"name":"a\u0062"}])",
           R"([{"name":"a","name":"b"}])",
           R"([{"name":null}])",
           R"([{"name":"a","attributes":null}])",
           R"([{"name":"a","attributes":{"b":{"int":1},"a":{"int":1}}}])",
           R"([{"name":"a","attributes":{"a":{"int":1},"a":{"int":1}}}])",
           R"([{"name":"a","attributes":{"a":{"int":1.5}}}])",
           R"([{"name":"a","attributes":{"a":{"int":01}}}])",
           R"([{"name":"a","attributes":{"a":{"int":99999999999999999999}}}])",
           R"([{"name":"a","attributes":{"a":{"ints":[1]}}}])",
           R"([{"name":"a","attributes":{"a":{}}}])",
           R"([{"name":"a","attributes":{"a":{"int":1,"string":"x"}}}])",
           R"([{"name":"a","capacity":{"a":{"value":8}}}])",
           R"([{"name":"a","taints":[{"key":"a","effect":"None"}]}])",
           R"([{"name":"a"}] x)",
       }) {
    EXPECT_FALSE(ReadDevices(text, kDriver)) << text;
  }
}

Json SliceWith(Json devices) {
  Json slice = ParseJson(R"({"metadata": {"name": "s"}, "spec": {"driver": "neuron.aws.com",
      "nodeName": "n", "pool": {"name": "n", "generation": 3, "resourceSliceCount": 2}}})");
  slice["spec"]["devices"] = std::move(devices);
  return slice;
}

Json AsText(std::string_view text) {
  return Json::binary(Json::binary_t::container_type(text.begin(), text.end()));
}

TEST(ParseResourceSliceTest, TheListOfDevicesMayBeAText) {
  for (const std::string& text :
       {Text(), std::string(R"([{"name":"\u0061","attributes":{"b":{"int":1},"a":{"ints":[]}}}])"),
        std::string("null")}) {
    const auto read = ParseResourceSlice(SliceWith(AsText(text)));
    const auto parsed = ParseResourceSlice(SliceWith(ParseJson(text)));
    ASSERT_TRUE(read.ok() && parsed.ok()) << text << read.status() << parsed.status();
    EXPECT_EQ(read->generation, 3);
    EXPECT_EQ(read->slices_in_pool, 2);
    ExpectSame(read->devices, parsed->devices, text);
  }
  const auto counted = ParseResourceSlice(SliceWith(AsText(Text())), SliceDetails::kRead);
  ASSERT_TRUE(counted.ok());
  EXPECT_EQ(counted->consumes.at(0).at(0).name, "node");
}

TEST(ParseResourceSliceTest, AMistakeInATextIsTheMistakeInTheValue) {
  const std::string text = R"([{"name": "a"}, {"name": 7}])";
  EXPECT_EQ(ParseResourceSlice(SliceWith(AsText(text))).status(),
            ParseResourceSlice(SliceWith(ParseJson(text))).status());
  EXPECT_FALSE(ParseResourceSlice(SliceWith(AsText(text))).ok());
  EXPECT_FALSE(ParseResourceSlice(SliceWith(AsText("[{]"))).ok());
  const std::string deep = std::string(5'000, '[') + std::string(5'000, ']');
  for (const std::string& devices :
       {std::string("7"), std::string("\"x\""), std::string("{}"), std::string("[7]"), deep,
        R"([{"name":"a","attributes":{"b":)" + deep + "}}]",
        std::string(R"([{"name":"a","attributes":{"b":{"int":"1"}}}])"),
        std::string(R"([{"name":"a","attributes":{"b":{"int":1e300}}}])"),
        std::string(R"([{"name":"a","attributes":{"b":{"bool":1}}}])"),
        std::string(R"([{"name":"a","attributes":[]}])"),
        std::string(R"([{"name":"a","taints":{}}])")}) {
    const auto read = ParseResourceSlice(SliceWith(AsText(devices)));
    EXPECT_EQ(read.status(), ParseResourceSlice(SliceWith(ParseJson(devices))).status());
    EXPECT_FALSE(read.ok()) << devices.substr(0, 100);
  }
}

}  // namespace
}  // namespace tahoma::kube

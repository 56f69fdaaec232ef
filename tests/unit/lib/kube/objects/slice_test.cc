#include "lib/kube/objects/slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

using json = Json;
using ::testing::ElementsAre;

json SliceObject() {
  return ParseJson(R"({"metadata": {"name": "s"},
    "spec": {"driver": "d.com", "nodeName": "n",
      "pool": {"name": "n", "generation": 3, "resourceSliceCount": 2},
      "devices": [{"name": "chip-0", "allowMultipleAllocations": true,
        "attributes": {"index": {"int": 3}, "type": {"string": "big"}, "fast": {"bool": true},
                       "other.com/driver": {"version": "1.2.3"}, "list": {"strings": ["a"]}},
        "capacity": {"memory": {"value": "96Gi"}, "cores": {"value": 8}},
        "taints": [{"key": "k", "effect": "NoExecute"}]}]}})");
}

TEST(ResourceSliceTest, ReadsThePoolAndItsDevices) {
  const auto slice = ParseResourceSlice(SliceObject());
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_EQ(slice->name, "s");
  EXPECT_EQ(slice->driver, "d.com");
  EXPECT_EQ(slice->node, "n");
  EXPECT_EQ(slice->pool, "n");
  EXPECT_EQ(slice->generation, 3);
  EXPECT_EQ(slice->slices_in_pool, 2);
  ASSERT_EQ(slice->devices.size(), 1U);
  const Device& device = slice->devices[0];
  EXPECT_EQ(device.name, "chip-0");
  EXPECT_TRUE(device.allow_multiple_allocations);
  EXPECT_THAT(device.attributes, ElementsAre(Attribute{{"d.com", "fast"}, true},
                                             Attribute{{"d.com", "index"}, std::int64_t{3}},
                                             Attribute{{"other.com", "driver"}, Version{"1.2.3"}},
                                             Attribute{{"d.com", "type"}, std::string("big")}))
      << "a list is left out";
  EXPECT_THAT(device.capacities, ElementsAre(Capacity{{"d.com", "cores"}, "8"},
                                             Capacity{{"d.com", "memory"}, "96Gi"}));
  EXPECT_THAT(device.taints, ElementsAre(Taint{"k", "", TaintEffect::kNoExecute}));
  EXPECT_EQ(*device.Find("d.com", "index"), AttributeValue(std::int64_t{3}));
  EXPECT_EQ(device.Find("other.com", "index"), nullptr);
}

TEST(ResourceSliceTest, AWrittenObjectReadsBackEqual) {
  json object = SliceObject();
  json& device = object["spec"]["devices"][0];
  device["attributes"].erase("list");
  device["capacity"]["cores"]["value"] = "8";
  device["consumesCounters"] =
      ParseJson(R"([{"counterSet": "node", "counters": {"chip-0": {"value": "8"}}}])");
  EXPECT_TRUE(ParseResourceSlice(object)->consumes.empty()) << "not asked for";
  const auto devices = ParseResourceSlice(object, SliceCounters::kRead);
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->consumes.at(0), (std::vector<CounterSet>{{"node", {{"chip-0", 8}}}}));
  EXPECT_EQ(RenderSliceSpec(*devices), object["spec"]);

  object["spec"].erase("devices");
  object["spec"]["sharedCounters"] = ParseJson(
      R"([{"name": "node", "counters": {"chip-0": {"value": "8"}, "chip-1": {"value": "8"}}}])");
  const auto counters = ParseResourceSlice(object, SliceCounters::kRead);
  ASSERT_TRUE(counters.ok()) << counters.status();
  EXPECT_EQ(RenderSliceSpec(*counters), object["spec"]);
  object["spec"]["sharedCounters"][0]["counters"]["chip-1"]["value"] = "8Gi";
  EXPECT_EQ(Message(ParseResourceSlice(object, SliceCounters::kRead).status()),
            "slice s: spec.sharedCounters[0].counters.chip-1.value: must be a whole number");
}

TEST(ResourceSliceTest, AnUnreadableFieldIsNamedWithItsPath) {
  json object = SliceObject();
  object["spec"]["devices"][0]["attributes"]["index"]["int"] = "3";
  EXPECT_EQ(Message(ParseResourceSlice(object).status()),
            "slice s: spec.devices[0].attributes.index.int: is a string, must be an integer");
  object = SliceObject();
  object["spec"]["devices"][0].erase("name");
  EXPECT_EQ(Message(ParseResourceSlice(object).status()),
            "slice s: spec.devices[0].name: is missing");
  object.erase("spec");
  EXPECT_EQ(Message(ParseResourceSlice(object).status()), "slice s: spec: is missing");
}

}  // namespace
}  // namespace tahoma::kube

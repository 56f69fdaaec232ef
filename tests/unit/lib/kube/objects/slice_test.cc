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
  const auto devices = ParseResourceSlice(object, SliceDetails::kRead);
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->consumes.at(0), (std::vector<CounterSet>{{"node", {{"chip-0", 8}}}}));
  EXPECT_EQ(RenderSliceSpec(*devices), object["spec"]);

  object["spec"].erase("devices");
  object["spec"]["sharedCounters"] = ParseJson(
      R"([{"name": "node", "counters": {"chip-0": {"value": "8"}, "chip-1": {"value": "8"}}}])");
  const auto counters = ParseResourceSlice(object, SliceDetails::kRead);
  ASSERT_TRUE(counters.ok()) << counters.status();
  EXPECT_EQ(RenderSliceSpec(*counters), object["spec"]);
  object["spec"]["sharedCounters"][0]["counters"]["chip-1"]["value"] = "many";
  EXPECT_EQ(Message(ParseResourceSlice(object, SliceDetails::kRead).status()),
            "slice s: spec.sharedCounters[0].counters.chip-1.value: 'many' is not a quantity: a "
            "number with an optional suffix such as 100m, 1.5, 2k, 96Gi or 3e6");
}

TEST(ResourceSliceTest, AFractionOfACounterNeverMakesRoom) {
  const auto slice = ParseResourceSlice(ParseJson(R"({"metadata": {"name": "s"}, "spec": {
        "sharedCounters": [{"name": "c", "counters": {
            "a": {"value": "2500m"}, "b": {"value": "1Ki"}, "d": {"value": "-3"}}}],
        "devices": [{"name": "d", "consumesCounters": [{"counterSet": "c", "counters": {
            "a": {"value": "2500m"}, "b": {"value": "1Ki"}}}]}]}})"),
                                        SliceDetails::kRead);
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_EQ(slice->shared_counters,
            (std::vector<CounterSet>{{"c", {{"a", 2}, {"b", 1024}, {"d", 0}}}}));
  EXPECT_EQ(slice->consumes.at(0), (std::vector<CounterSet>{{"c", {{"a", 3}, {"b", 1024}}}}));
}

json DetailedSlice() {
  return ParseJson(R"({"metadata": {"name": "s"},
    "spec": {"driver": "d.com", "perDeviceNodeSelection": true,
      "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
      "devices": [
        {"name": "a", "allowMultipleAllocations": true, "nodeName": "n", "bindsToNode": true,
         "attributes": {"ids": {"ints": [3, 4]}, "on": {"bools": [true]}, "zone": {"string": "z"},
                        "other.com/names": {"strings": ["x", "y"]},
                        "builds": {"versions": ["1.0.0"]}},
         "capacity": {"memory": {"value": "8Gi", "requestPolicy": {"default": "1Gi",
                        "validRange": {"min": "1Gi", "max": "4Gi", "step": "1Gi"}}},
                      "rate": {"value": "100", "requestPolicy": {"validValues": ["10", "50"]}}},
         "bindingConditions": ["Attached"], "bindingFailureConditions": ["Lost"]},
        {"name": "b", "allNodes": true, "attributes": {}},
        {"name": "c", "attributes": {}, "nodeSelector": {"nodeSelectorTerms": [{
            "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}}]}})");
}

TEST(ResourceSliceTest, DetailsOfDevicesReadBackEqualAndOnlyWhenAskedFor) {
  const json object = DetailedSlice();
  const auto slice = ParseResourceSlice(object, SliceDetails::kRead);
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_EQ(RenderSliceSpec(*slice), object["spec"]);
  EXPECT_TRUE(slice->per_device_nodes);
  const DeviceDetails& first = slice->details.at(0);
  ASSERT_EQ(first.lists.size(), 4U) << "the scalar is an attribute of the device";
  EXPECT_EQ(first.policies.at(0).otherwise, *Quantity::Parse("1Gi"));
  const auto plain = ParseResourceSlice(object);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_TRUE(plain->details.empty());
  EXPECT_FALSE(plain->per_device_nodes);
}

TEST(ResourceSliceTest, ASliceOfSeveralNodesReadsBackEqual) {
  for (const char* nodes : {R"({"allNodes": true})",
                            R"({"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "a", "operator": "NotIn", "values": ["x", "y"]}, {"key": "b", "operator": "Gt",
             "values": ["3"]}], "matchFields": [{"key": "metadata.name", "operator": "In",
             "values": ["n"]}]}]}})"}) {
    json object = SliceObject();
    object["spec"].erase("nodeName");
    object["spec"]["devices"] = json::array({json{{"name", "d"}, {"attributes", json::object()}}});
    object["spec"].update(ParseJson(nodes));
    const auto slice = ParseResourceSlice(object, SliceDetails::kRead);
    ASSERT_TRUE(slice.ok()) << slice.status();
    EXPECT_EQ(RenderSliceSpec(*slice), object["spec"]);
  }
}

TEST(ResourceSliceTest, AnAttributeOfAnUnknownTypeIsKnownToBeThere) {
  json object = DetailedSlice();
  object["spec"]["devices"][1]["attributes"]["new"] = {{"matrix", 3}};
  const auto slice = ParseResourceSlice(object, SliceDetails::kRead);
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_THAT(slice->details.at(1).lists, ElementsAre(ListAttribute{{"d.com", "new"}, {}}));
}

TEST(ResourceSliceTest, AnUnreadablePolicyIsNamedWithItsPath) {
  json object = DetailedSlice();
  json& policy = object["spec"]["devices"][0]["capacity"]["memory"]["requestPolicy"];
  policy["validRange"]["step"] = "0";
  EXPECT_EQ(Message(ParseResourceSlice(object, SliceDetails::kRead).status()),
            "slice s: spec.devices[0].capacity.memory.requestPolicy.validRange.step: must be "
            "positive");
  policy["default"] = ParseJson("{}");
  EXPECT_EQ(Message(ParseResourceSlice(object, SliceDetails::kRead).status()),
            "slice s: spec.devices[0].capacity.memory.requestPolicy.default: '{}' is not a "
            "quantity: a number with an optional suffix such as 100m, 1.5, 2k, 96Gi or 3e6");
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

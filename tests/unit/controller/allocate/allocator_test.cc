#include "controller/allocate/allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/controller/allocate/world.h"

namespace tahoma::controller::allocate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json Int(const std::string& name, int value) {
  return {{"attributes", {{name, {{"int", value}}}}}};
}

World WorldOf(const std::vector<Json>& devices, const std::vector<Json>& requests) {
  World world;
  world.slices = {SliceOf("p", devices)};
  world.claims = {ClaimOf(requests)};
  return world;
}

TEST(AllocatorTest, TheFirstDevicesOfThePublishedOrderAreTaken) {
  World world = WorldOf({DeviceOf("z"), DeviceOf("b"), DeviceOf("a")}, {RequestOf("r", 2)});
  EXPECT_EQ(world.Devices(), "r:z r:b");
  world.in_use.devices.insert({"d.com", "p", "z"});
  EXPECT_EQ(world.Devices(), "r:b r:a");
  world.in_use.devices.insert({"d.com", "p", "a"});
  EXPECT_EQ(world.Devices(), "none");
}

TEST(AllocatorTest, AnEarlyRequestLeavesTheOnlyDeviceThatALaterOneCanUse) {
  const World world = WorldOf(
      {DeviceOf("a", Int("kind", 1)), DeviceOf("b", Int("kind", 2)), DeviceOf("c", Int("kind", 2))},
      {RequestOf("any", 2), RequestOf("one", 1, Selector("device.attributes['d.com'].kind == 1"))});
  EXPECT_EQ(world.Devices(), "any:b any:c one:a");
}

TEST(AllocatorTest, TheOrderOfSlicesDoesNotMatter) {
  World world;
  world.slices = {SliceOf("q", {DeviceOf("d0")}), SliceOf("p", {DeviceOf("d1")})};
  world.claims = {ClaimOf({RequestOf("r", 2)})};
  EXPECT_EQ(world.Devices(), "r:d1 r:d0");
  std::swap(world.slices[0], world.slices[1]);
  EXPECT_EQ(world.Devices(), "r:d1 r:d0");
}

TEST(AllocatorTest, ClaimsOfOnePodDoNotShareADevice) {
  World world = WorldOf({DeviceOf("a"), DeviceOf("b")}, {RequestOf("r", 1)});
  world.claims.push_back(world.claims[0]);
  EXPECT_EQ(world.Devices(), "r:a | r:b");
  world.claims.push_back(world.claims[0]);
  EXPECT_EQ(world.Devices(), "none");
}

TEST(AllocatorTest, AdminAccessHasDevicesThatAreInUse) {
  World world =
      WorldOf({DeviceOf("a"), DeviceOf("b")}, {RequestOf("watch", 2, {{"adminAccess", true}})});
  world.in_use.devices.insert({"d.com", "p", "a"});
  const Answer answer = world.Allocate();
  ASSERT_TRUE(answer.ok() && answer->has_value());
  EXPECT_EQ(world.Devices(), "watch:a watch:b");
  EXPECT_TRUE((**answer)[0].results[0].admin_access);
}

TEST(AllocatorTest, ATaintKeepsAwayRequestsThatDoNotTolerateTheTaint) {
  const Json tainted = {{"taints", Json::array({Json{{"key", "k"}, {"effect", "NoSchedule"}}})}};
  World world = WorldOf({DeviceOf("a", tainted), DeviceOf("b")}, {RequestOf("r", 1)});
  EXPECT_EQ(world.Devices(), "r:b");
  world.claims = {ClaimOf({RequestOf(
      "r", 1, {{"tolerations", Json::array({Json{{"key", "k"}, {"operator", "Exists"}}})}})})};
  EXPECT_EQ(world.Devices(), "r:a");
  const Answer answer = world.Allocate();
  EXPECT_EQ((**answer)[0].results[0].tolerations.size(), 1u) << "the driver must see why";
}

TEST(AllocatorTest, AConstraintHoldsForTheRequestsThatTheConstraintNames) {
  World world = WorldOf({DeviceOf("a", Int("numa", 1)), DeviceOf("b", Int("numa", 2)),
                         DeviceOf("c", Int("numa", 2)), DeviceOf("d")},
                        {RequestOf("x", 1), RequestOf("y", 1), RequestOf("z", 1)});
  world.claims[0]["devices"]["constraints"] =
      ParseJson(R"([{"matchAttribute": "d.com/numa", "requests": ["x", "y"]}])");
  EXPECT_EQ(world.Devices(), "x:b y:c z:a");
  world.claims[0]["devices"]["constraints"] =
      ParseJson(R"([{"distinctAttribute": "d.com/numa", "requests": ["x", "y"]}])");
  EXPECT_EQ(world.Devices(), "x:a y:b z:c");
}

TEST(AllocatorTest, AllDevicesOfOneRequestAreDistinct) {
  const World world = [] {
    World made = WorldOf({DeviceOf("a", Int("numa", 1)), DeviceOf("b", Int("numa", 2)),
                          DeviceOf("c", Int("numa", 1)), DeviceOf("d", Int("numa", 3))},
                         {RequestOf("r", 3)});
    made.claims[0]["devices"]["constraints"] =
        ParseJson(R"([{"distinctAttribute": "d.com/numa"}])");
    return made;
  }();
  EXPECT_EQ(world.Devices(), "r:a r:b r:d") << "c has the value of a";
}

TEST(AllocatorTest, ListsMatchByAValueThatAllHave) {
  const auto with = [](const std::vector<int>& values) {
    return Json{{"attributes", {{"roots", {{"ints", values}}}}}};
  };
  World world = WorldOf({DeviceOf("a", with({1, 2})), DeviceOf("b", with({2, 3})),
                         DeviceOf("c", with({3, 1})), DeviceOf("d", with({2}))},
                        {RequestOf("r", 3)});
  world.claims[0]["devices"]["constraints"] = ParseJson(R"([{"matchAttribute": "d.com/roots"}])");
  EXPECT_EQ(world.Devices(), "r:a r:b r:d") << "a, b and c have no value in common";
}

TEST(AllocatorTest, TheFirstAlternativeThatFitsIsTaken) {
  World world = WorldOf({DeviceOf("a"), DeviceOf("b")}, {});
  world.claims = {ClaimOf({ParseJson(R"({"name": "r", "firstAvailable": [
      {"name": "many", "deviceClassName": "any", "count": 3},
      {"name": "two", "deviceClassName": "any", "count": 2},
      {"name": "one", "deviceClassName": "any", "count": 1}]})")})};
  EXPECT_EQ(world.Devices(), "r/two:a r/two:b");
  world.claims[0]["devices"]["requests"].push_back(RequestOf("s", 1));
  EXPECT_EQ(world.Devices(), "r/one:a s:b");
}

TEST(AllocatorTest, AllMeansEveryDeviceThatIsSelectedAndFree) {
  World world = WorldOf(
      {DeviceOf("a", Int("kind", 1)), DeviceOf("b", Int("kind", 2)), DeviceOf("c", Int("kind", 1))},
      {AllOf("r", Selector("device.attributes['d.com'].kind == 1"))});
  EXPECT_EQ(world.Devices(), "r:a r:c");
  world.in_use.devices.insert({"d.com", "p", "c"});
  EXPECT_EQ(world.Devices(), "none");
  world.slices[0]["spec"]["pool"]["resourceSliceCount"] = 2;
  EXPECT_THAT(world.Devices(), HasSubstr("is being published"));
}

TEST(AllocatorTest, CountersOfDevicesInUseAreGone) {
  World world;
  const auto part = [](const std::string& name, int memory) {
    return DeviceOf(
        name, {{"consumesCounters",
                Json::array({Json{
                    {"counterSet", "gpu"},
                    {"counters", {{"memory", {{"value", fmt::format("{}Gi", memory)}}}}}}})}});
  };
  world.slices = {
      SliceOf("p", {part("whole", 4), part("half-0", 2), part("half-1", 2), part("quarter", 1)}),
      SliceOf("p", {})};
  world.slices[1]["metadata"]["name"] = "counters";
  world.slices[1]["spec"].erase("devices");
  world.slices[1]["spec"]["sharedCounters"] =
      ParseJson(R"([{"name": "gpu", "counters": {"memory": {"value": "4Gi"}}}])");
  for (Json& slice : world.slices) slice["spec"]["pool"]["resourceSliceCount"] = 2;
  world.claims = {ClaimOf({RequestOf("r", 2)})};
  EXPECT_EQ(world.Devices(), "r:half-0 r:half-1") << "the whole leaves nothing";
  world.in_use.devices.insert({"d.com", "p", "half-0"});
  EXPECT_EQ(world.Devices(), "none");
  world.claims = {ClaimOf({RequestOf("r", 1)})};
  EXPECT_EQ(world.Devices(), "r:half-1");
  world.features.partitionable_devices = false;
  EXPECT_EQ(world.Devices(), "none");
}

World SharedWorld() {
  return WorldOf({DeviceOf("nic", ParseJson(R"({"allowMultipleAllocations": true,
      "capacity": {"rate": {"value": "10", "requestPolicy": {
          "default": "1", "validRange": {"min": "1", "max": "6", "step": "2"}}}}})"))},
                 {RequestOf("r", 1, ParseJson(R"({"capacity": {"requests": {"rate": "4"}}})")),
                  RequestOf("s", 1)});
}

TEST(AllocatorTest, ASharedDeviceHasAsMuchAsItsSharesLeave) {
  World world = SharedWorld();
  const Answer answer = world.Allocate();
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_TRUE(answer->has_value());
  const kube::Allocation& allocation = (**answer)[0];
  ASSERT_EQ(allocation.details.size(), 2u);
  EXPECT_THAT(allocation.details[0].consumed, ElementsAre(kube::ConsumedCapacity{"rate", "5"}))
      << "4 is rounded up to a step";
  EXPECT_THAT(allocation.details[1].consumed, ElementsAre(kube::ConsumedCapacity{"rate", "1"}));
  world.in_use.shares[{"d.com", "p", "nic"}] = {{{"d.com", "rate"}, kube::Quantity::Of(4)}};
  EXPECT_EQ(world.Devices(), "r:nic s:nic") << "all 10 are consumed";
  world.in_use.shares[{"d.com", "p", "nic"}] = {{{"d.com", "rate"}, kube::Quantity::Of(5)}};
  EXPECT_EQ(world.Devices(), "none");
}

TEST(AllocatorTest, IdsOfSharesAreUniqueAndTheSameOnEveryRun) {
  World world = SharedWorld();
  world.claims.push_back(ClaimOf({RequestOf("s", 1)}));
  std::set<std::string> ids;
  for (int run = 0; run < 2; ++run) {
    const Answer answer = world.Allocate();
    ASSERT_TRUE(answer.ok() && answer->has_value());
    for (const kube::Allocation& allocation : **answer) {
      for (const kube::ResultDetails& details : allocation.details) {
        EXPECT_THAT(details.share_id,
                    ::testing::MatchesRegex(
                        "[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}"));
        ids.insert(details.share_id);
      }
    }
  }
  EXPECT_EQ(ids.size(), 3u);
}

TEST(AllocatorTest, ConfigurationsOfClassesComeBeforeThoseOfTheClaim) {
  World world = WorldOf({DeviceOf("a"), DeviceOf("b")}, {RequestOf("r", 1), RequestOf("s", 1)});
  world.any.configs = {
      {.source = kube::ConfigSource::kClass, .requests = {}, .driver = "d.com", .parameters = "1"}};
  world.claims[0]["devices"]["config"] = ParseJson(R"([
      {"opaque": {"driver": "d.com", "parameters": 2}, "requests": ["r", "s"]},
      {"opaque": {"driver": "d.com", "parameters": 3}, "requests": ["t"]},
      {"opaque": {"driver": "d.com", "parameters": 4}}])");
  const Answer answer = world.Allocate();
  ASSERT_TRUE(answer.ok() && answer->has_value());
  const auto& configs = (**answer)[0].configs;
  ASSERT_EQ(configs.size(), 3u) << "no request is named t";
  EXPECT_THAT(configs[0].requests, ElementsAre("r", "s")) << "the class's stands there once";
  EXPECT_EQ(configs[0].source, kube::ConfigSource::kClass);
  EXPECT_EQ(configs[1].parameters, "2");
  EXPECT_EQ(configs[2].parameters, "4");
}

TEST(AllocatorTest, AnAllocationIsForTheNodesThatCanUseItsDevices) {
  World world = WorldOf({DeviceOf("a")}, {RequestOf("r", 1)});
  EXPECT_EQ((**world.Allocate())[0].node, "n");
  Json& spec = world.slices[0]["spec"];
  spec.erase("nodeName");
  spec["allNodes"] = true;
  kube::Allocation everywhere = (**world.Allocate())[0];
  EXPECT_EQ(everywhere.node, "");
  EXPECT_THAT(everywhere.node_terms, IsEmpty());
  spec.erase("allNodes");
  spec["nodeSelector"] = ParseJson(R"({"nodeSelectorTerms": [{"matchExpressions": [
      {"key": "zone", "operator": "In", "values": ["z1"]}]}]})");
  EXPECT_EQ(world.Devices(), "none");
  world.labels = {{"zone", "z1"}};
  EXPECT_EQ((**world.Allocate())[0].node_terms.size(), 1u);
  spec["devices"][0]["bindsToNode"] = true;
  EXPECT_EQ((**world.Allocate())[0].node, "n");
  EXPECT_THAT((**world.Allocate())[0].node_terms, IsEmpty());
}

TEST(AllocatorTest, DevicesMayHaveNodesOfTheirOwn) {
  World world = WorldOf({DeviceOf("a", {{"nodeName", "m"}}), DeviceOf("b", {{"nodeName", "n"}}),
                         DeviceOf("c", {{"allNodes", true}})},
                        {RequestOf("r", 1)});
  world.slices[0]["spec"].erase("nodeName");
  world.slices[0]["spec"]["perDeviceNodeSelection"] = true;
  EXPECT_EQ(world.Devices(), "r:b");
  EXPECT_EQ((**world.Allocate())[0].node, "n");
  world.claims = {ClaimOf({RequestOf("r", 2)})};
  EXPECT_EQ(world.Devices(), "r:b r:c");
  world.claims = {ClaimOf({RequestOf("r", 3)})};
  EXPECT_EQ(world.Devices(), "none");
}

TEST(AllocatorTest, APoolIsUsedWhenItsNewestGenerationIsComplete) {
  World world = WorldOf({DeviceOf("old")}, {RequestOf("r", 1)});
  Json newer = SliceOf("p", {DeviceOf("new")});
  newer["metadata"]["name"] = "newer";
  newer["spec"]["pool"]["generation"] = 2;
  world.slices.push_back(newer);
  EXPECT_EQ(world.Devices(), "r:new");
  std::swap(world.slices[0], world.slices[1]);
  world.claims = {ClaimOf({RequestOf("r", 2)})};
  EXPECT_EQ(world.Devices(), "none") << "whatever is seen first, the old device is gone";
  std::swap(world.slices[0], world.slices[1]);
  world.claims = {ClaimOf({RequestOf("r", 1)})};
  world.slices[1]["spec"]["pool"]["resourceSliceCount"] = 2;
  EXPECT_EQ(world.Devices(), "none") << "the other slice may say that the device is gone";
  world.slices[1]["spec"]["nodeName"] = "elsewhere";
  EXPECT_EQ(world.Devices(), "r:old") << "as in Kubernetes: the old pool has all its slices here";
  world.slices.push_back(SliceOf("q", {DeviceOf("other")}));
  world.slices[1]["spec"]["nodeName"] = "n";
  EXPECT_EQ(world.Devices(), "r:other");
}

TEST(AllocatorTest, AnInvalidPoolIsAnErrorOnlyWhereNothingElseFits) {
  World world = WorldOf({DeviceOf("twin"), DeviceOf("twin")}, {RequestOf("r", 1)});
  EXPECT_EQ(world.Allocate().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(world.Devices(),
              HasSubstr("pool d.com/p is invalid: two devices have the name twin"));
  world.slices.push_back(SliceOf("q", {DeviceOf("a")}));
  EXPECT_EQ(world.Devices(), "r:a");
}

TEST(AllocatorTest, DevicesThatAreReadyAtOnceComeBeforeDevicesWithConditions) {
  World world;
  world.slices = {SliceOf("a", {DeviceOf("slow", ParseJson(R"({"bindingConditions": ["Attached"],
                                                  "bindingFailureConditions": ["Lost"]})"))}),
                  SliceOf("b", {DeviceOf("ready")})};
  world.claims = {ClaimOf({RequestOf("r", 2)})};
  EXPECT_EQ(world.Devices(), "r:ready r:slow");
  const Answer answer = world.Allocate();
  ASSERT_EQ((**answer)[0].details.size(), 1u);
  EXPECT_EQ((**answer)[0].details[0].result, 1u);
  EXPECT_THAT((**answer)[0].details[0].binding_conditions, ElementsAre("Attached"));
  EXPECT_EQ((**answer)[0].details[0].share_id, "");
}

TEST(AllocatorTest, AFailingSelectorIsAnErrorWithItsPlace) {
  World world = WorldOf({DeviceOf("a")},
                        {RequestOf("r", 1, Selector("device.attributes['d.com'].kind == 1"))});
  EXPECT_EQ(world.Devices(),
            "claim c0: CEL selector \"device.attributes['d.com'].kind == 1\" on device a: no such "
            "key: kind");
  world.any.selectors = {"nonsense"};
  EXPECT_THAT(world.Devices(), HasSubstr("DeviceClass \"any\": 1:1: undeclared reference"));
  world.slices.clear();
  EXPECT_EQ(world.Devices(), "none") << "no device was looked at";
  world.any.name = "other";
  EXPECT_EQ(world.Allocate().status().code(), absl::StatusCode::kNotFound);
}

TEST(AllocatorTest, AClaimForLessThanNothingIsRefused) {
  for (const char* rest : {R"({"count": 0})", R"({"capacity": {"requests": {"rate": "-1"}}})"}) {
    Json request = RequestOf("r", 1);
    request["exactly"].update(ParseJson(rest));
    const World world = WorldOf({DeviceOf("a")}, {request});
    EXPECT_EQ(world.Allocate().status().code(), absl::StatusCode::kInvalidArgument) << rest;
  }
}

TEST(AllocatorTest, EqualDevicesAreTriedOnce) {
  std::vector<Json> devices;
  for (int i = 0; i < 64; ++i) devices.push_back(DeviceOf(fmt::format("d{}", i), Int("serial", i)));
  World world = WorldOf(
      devices, {RequestOf("r", 16), RequestOf("s", 1, Selector("device.driver == 'none.com'"))});
  world.steps = 10'000;
  EXPECT_EQ(world.Devices(), "none") << "there are 10^14 subsets of 16 devices";
}

TEST(AllocatorTest, DevicesOfWhichNoTwoAreAlikeAreBoundedToo) {
  std::vector<Json> devices;
  for (int i = 0; i < 2000; ++i) {
    devices.push_back(DeviceOf(fmt::format("d{}", i), Int("serial", i)));
  }
  World world = WorldOf(devices, {RequestOf("r", 1), RequestOf("s", 1, Selector("false"))});
  world.claims[0]["devices"]["constraints"] =
      ParseJson(R"([{"matchAttribute": "d.com/serial", "requests": ["r"]}])");
  world.steps = 1'000'000;
  EXPECT_EQ(world.Allocate().status().code(), absl::StatusCode::kResourceExhausted)
      << "2000 devices need 2 million comparisons";
}

TEST(AllocatorTest, ManyClaimsAreBoundedTogether) {
  std::vector<Json> devices;
  for (int i = 0; i < 600; ++i) devices.push_back(DeviceOf(fmt::format("d{}", i)));
  World world = WorldOf(devices, {RequestOf("r", 32)});
  world.claims.resize(16, world.claims[0]);
  const Answer answer = world.Allocate();
  ASSERT_TRUE(answer.ok() && answer->has_value()) << answer.status();
  EXPECT_EQ((**answer)[15].results.back().device, "d511");
  world.claims.push_back(ClaimOf({RequestOf("r", 1)}));
  EXPECT_EQ(world.Devices(), "the claims ask for more than 512 devices together");
}

TEST(AllocatorTest, TheSearchGivesUpAfterItsSteps) {
  std::vector<Json> devices;
  for (int i = 0; i < 40; ++i) devices.push_back(DeviceOf(fmt::format("d{}", i), Int("serial", i)));
  World world =
      WorldOf(devices, {RequestOf("r", 20),
                        RequestOf("s", 1, Selector("device.attributes['d.com'].serial == 100"))});
  world.claims[0]["devices"]["constraints"] =
      ParseJson(R"([{"distinctAttribute": "d.com/serial", "requests": ["r"]}])");
  world.steps = 20'000;
  EXPECT_EQ(world.Allocate().status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace tahoma::controller::allocate

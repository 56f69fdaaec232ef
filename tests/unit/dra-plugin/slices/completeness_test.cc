// The plugin's condition about devices that an older API server cannot be shown, against our
// server.

#include "dra-plugin/slices/completeness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controller/apiserver/http/in_process_transport.h"
#include "dra-plugin/slices/slice_json.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "tests/support/api_fixture.h"
#include "tests/support/intercepted_transport.h"

namespace tahoma::dra {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Publish kAll = {};
constexpr Publish kChipsOnly = {.chips = true, .lnc1 = false, .lnc2 = false, .node = false};
constexpr Publish kWithoutLnc1 = {.chips = true, .lnc1 = false, .lnc2 = true, .node = true};

DevicePool PoolOf(const Publish& publish, bool managed_taint = true) {
  wire::Inventory inventory = {
      .generation = 1, .node_name = "node-a", .instance_type = "trn2u.48xlarge"};
  inventory.ultra_server = wire::UltraServer{.id = "us-1", .node_id = 1};
  for (int i = 0; i < 16; ++i) inventory.chips.push_back({.index = i});
  return *BuildPool(inventory, {.publish = publish, .managed_taint = managed_taint});
}

const ServerSupport kNew = {.counters = CounterSupport::kApart, .minor = 36};

ServerSupport WithoutCounters(int minor) {
  return {.counters = CounterSupport::kNone, .minor = minor};
}
ServerSupport WithoutTaints(ServerSupport server) {
  server.dropped_fields.insert(kTaintsField);
  return server;
}

TEST(CompletenessTest, AServerThatKeepsEverythingIsShownEverything) {
  const Completeness found = CompletenessOf(PoolOf(kAll), kNew);
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(found.reason, "AllShown");
}

TEST(CompletenessTest, ADisabledGateOfCountersIsNamedWithTheMissingDevices) {
  const Completeness found = CompletenessOf(PoolOf(kAll), WithoutCounters(35));
  EXPECT_FALSE(found.complete);
  EXPECT_EQ(found.reason, "NoCounters");
  EXPECT_EQ(
      found.message,
      "Not shown: NeuronCores (LNC 1 and LNC 2) and the whole node, for Kubernetes 1.35 keeps "
      "no counters of devices while its feature gate DRAPartitionableDevices is off. Turn it "
      "on, or upgrade to Kubernetes 1.36, where it is on by default.");
}

TEST(CompletenessTest, NobodyIsToldToUpgradeToWhatHeHas) {
  const Completeness found = CompletenessOf(PoolOf(kAll), WithoutCounters(36));
  EXPECT_THAT(found.message, HasSubstr("DRAPartitionableDevices is off. Turn it on."));
  EXPECT_THAT(found.message, Not(HasSubstr("pgrade")));
}

TEST(CompletenessTest, WhereTheGateAloneWouldNotBringAllBackTheCureIsAnUpgrade) {
  EXPECT_THAT(CompletenessOf(PoolOf(kAll), WithoutCounters(34)).message,
              HasSubstr("Upgrade to Kubernetes 1.36, where it is on by default; turned on in 1.34, "
                        "it leaves out NeuronCores (LNC 1)."));
  EXPECT_THAT(CompletenessOf(PoolOf(kWithoutLnc1), WithoutCounters(34)).message,
              HasSubstr("Turn it on, or upgrade to Kubernetes 1.36"));
}

TEST(CompletenessTest, FewCountersHideTheCoresOfLnc1) {
  const ServerSupport few = {.counters = CounterSupport::kTogether, .minor = 34};
  const Completeness found = CompletenessOf(PoolOf(kAll), few);
  EXPECT_EQ(found.reason, "FewCounters");
  EXPECT_EQ(
      found.message,
      "Not shown: NeuronCores (LNC 1), for Kubernetes 1.34 keeps too few counters of devices. "
      "Upgrade to Kubernetes 1.36, or to 1.35 with the feature gate DRAPartitionableDevices "
      "on.");
  EXPECT_TRUE(CompletenessOf(PoolOf(kWithoutLnc1), few).complete);
}

TEST(CompletenessTest, WhatIsNotConfiguredIsNotMissing) {
  EXPECT_TRUE(CompletenessOf(PoolOf(kChipsOnly), WithoutCounters(34)).complete);
  const Publish one_kind = {.chips = false, .lnc1 = false, .lnc2 = true, .node = false};
  EXPECT_TRUE(CompletenessOf(PoolOf(one_kind), WithoutCounters(34)).complete);
}

TEST(CompletenessTest, AServerThatKeepsNoTaintsIsSaidBeforeAnythingBreaks) {
  const ServerSupport server = WithoutTaints({.counters = CounterSupport::kApart, .minor = 35});
  const Completeness found = CompletenessOf(PoolOf(kChipsOnly), server);
  EXPECT_FALSE(found.complete);
  EXPECT_EQ(found.reason, "NoTaints");
  EXPECT_EQ(
      found.message,
      "Not shown: taints of devices. What has a fault is left out instead, pods that use it "
      "stay, and kube-scheduler does not see the taint tahoma.dev/managed, for Kubernetes "
      "1.35 keeps no taints of devices while its feature gate DRADeviceTaints is off. Turn it "
      "on, or upgrade to Kubernetes 1.36, where it is on by default.");
  EXPECT_THAT(CompletenessOf(PoolOf(kChipsOnly, /*managed_taint=*/false), server).message,
              Not(HasSubstr("kube-scheduler")));
}

TEST(CompletenessTest, SeveralLacksAreAllSaid) {
  ServerSupport server = WithoutTaints(WithoutCounters(34));
  server.dropped_fields.insert("spec.devices[].name");
  const Completeness found = CompletenessOf(PoolOf(kAll), server);
  EXPECT_EQ(found.reason, "NoCountersAndNoTaintsAndFieldsDropped");
  EXPECT_THAT(found.message, HasSubstr("DRAPartitionableDevices"));
  EXPECT_THAT(found.message, HasSubstr("DRADeviceTaints"));
  EXPECT_THAT(found.message, HasSubstr("Not shown: spec.devices[].name, for Kubernetes 1.34"));
}

const std::string kNode = "/api/v1/nodes/node-a";
const Completeness kComplete = {.complete = true, .reason = "AllShown", .message = "all"};
const Completeness kLacking = {.complete = false, .reason = "NoTaints", .message = "few"};

class CompletenessReporterTest : public testing::ApiFixture {
 protected:
  CompletenessReporterTest() {
    const Json node = {{"metadata", {{"name", "node-a"}}}};
    EXPECT_EQ(Call("POST", "/api/v1/nodes", node).status, 201);
    const Json ready = {{"type", "Ready"}, {"status", "True"}, {"reason", "Kubelet"}};
    const Json status = {{"capacity", {{"cpu", "4"}}}, {"conditions", Json::array({ready})}};
    EXPECT_EQ(Patch(kNode + "/status", "strategic-merge-patch+json", {{"status", status}}).status,
              200);
  }
  Json Node() { return Call("GET", kNode).body; }
  // The plugin's condition, or another; null without one.
  Json Shown(std::string_view type = kDevicesComplete) {
    const Json node = Node();
    for (const Json& condition : kube::ListAt(node, {"status", "conditions"})) {
      if (kube::StringAt(condition, {"type"}) == type) return condition;
    }
    return nullptr;
  }
  absl::Status Report(const Completeness& found) {
    clock_.Advance(std::chrono::seconds(60));
    return reporter_.Report(Node(), found, clock_.WallNow());
  }

  controller::apiserver::InProcessTransport in_process_{*server_, clock_, "dra-plugin"};
  testing::InterceptedTransport transport_{in_process_};
  CompletenessReporter reporter_{transport_, "node-a"};
};

TEST_F(CompletenessReporterTest, TheConditionStandsBesideThoseOfTheKubelet) {
  Json before = Node()["status"];
  const Json ready = Shown("Ready");
  ASSERT_TRUE(Report(kLacking).ok());
  const std::string now = FormatTime(clock_.WallNow());
  const Json wanted = {{"type", "tahoma.dev/DevicesComplete"},
                       {"status", "False"},
                       {"reason", "NoTaints"},
                       {"message", "few"},
                       {"lastHeartbeatTime", now},
                       {"lastTransitionTime", now}};
  EXPECT_EQ(Shown(), wanted);
  Json after = Node()["status"];
  ASSERT_EQ(after["conditions"].size(), 2u);
  EXPECT_EQ(Shown("Ready"), ready);
  after.erase("conditions");
  before.erase("conditions");
  EXPECT_EQ(after, before);
}

TEST_F(CompletenessReporterTest, NothingIsWrittenWhenItIsSaidAlready) {
  ASSERT_TRUE(Report(kLacking).ok());
  const Json before = Node();
  ASSERT_TRUE(Report(kLacking).ok());
  CompletenessReporter restarted(transport_, "node-a");
  ASSERT_TRUE(restarted.Report(before, kLacking, clock_.WallNow()).ok());
  EXPECT_EQ(Node(), before);
  EXPECT_EQ(transport_.writes(), 1);
}

TEST_F(CompletenessReporterTest, TheTimeIsThatOfTheLastChangeOfTheStatus) {
  ASSERT_TRUE(Report(kLacking).ok());
  const Json first = Shown();
  Completeness more = kLacking;
  more.reason = "NoCountersAndNoTaints";
  ASSERT_TRUE(Report(more).ok());
  EXPECT_EQ(Shown()["reason"], "NoCountersAndNoTaints");
  EXPECT_EQ(Shown()["lastTransitionTime"], first["lastTransitionTime"]);
  ASSERT_TRUE(Report(kComplete).ok());
  EXPECT_EQ(Shown()["status"], "True");
  EXPECT_EQ(Shown()["lastTransitionTime"], FormatTime(clock_.WallNow()));
}

TEST_F(CompletenessReporterTest, WhatSomebodyElseWroteIsPutRight) {
  ASSERT_TRUE(Report(kLacking).ok());
  const Json other = {{"type", kDevicesComplete}, {"status", "True"}, {"message", "no, all"}};
  const Json patch = {{"status", {{"conditions", Json::array({other})}}}};
  ASSERT_EQ(Patch(kNode + "/status", "strategic-merge-patch+json", patch).status, 200);
  ASSERT_TRUE(Report(kLacking).ok());
  EXPECT_EQ(Shown()["status"], "False");
  EXPECT_EQ(Shown()["message"], "few");
}

TEST_F(CompletenessReporterTest, ARefusalNamesTheConditionAndTheNode) {
  transport_.answer = [](const kube::Request& request) -> std::optional<kube::Response> {
    if (request.method != "PATCH") return {};
    return kube::Response{.status = 403, .body = R"({"kind": "Status", "reason": "Forbidden"})"};
  };
  const absl::Status status = Report(kLacking);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Message(status), HasSubstr("condition tahoma.dev/DevicesComplete of node node-a"));
  transport_.answer = nullptr;
  ASSERT_TRUE(Report(kLacking).ok()) << "the right was given";
  EXPECT_EQ(Shown()["status"], "False");
}

TEST_F(CompletenessReporterTest, ANodeOfOddMembersIsWrittenAsOneWithoutTheCondition) {
  for (const char* odd : {"null", "[]", R"({"status": 1})", R"({"status": {"conditions": {}}})",
                          R"({"status": {"conditions": [1, {"type": 2}]}})"}) {
    EXPECT_TRUE(reporter_.Report(ParseJson(odd), kLacking, clock_.WallNow()).ok()) << odd;
  }
  EXPECT_EQ(transport_.writes(), 5);
}

}  // namespace
}  // namespace tahoma::dra

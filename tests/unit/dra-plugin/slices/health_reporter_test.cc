// The plugin's reports of its devices' health, against our own API server.

#include "dra-plugin/slices/health_reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "controller/apiserver/http/in_process_transport.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "tests/support/api_fixture.h"
#include "tests/support/intercepted_transport.h"

namespace tahoma::dra {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kClaims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

// Chips 0 to 3, with `faults` by chip.
DevicePool PoolWith(const std::map<int, std::string>& faults) {
  DevicePool pool;
  pool.groups.emplace_back();
  for (int i = 0; i < 4; ++i) {
    Device& device = pool.groups[0].emplace_back();
    device.name = fmt::format("neuron-device-{}", i);
    const auto fault = faults.find(i);
    if (fault == faults.end()) continue;
    device.taints = {{std::string(kUnhealthyTaint), fault->second, TaintEffect::kNoExecute}};
  }
  return pool;
}

class HealthReporterTest : public testing::ApiFixture {
 protected:
  HealthReporterTest() {
    EXPECT_EQ(Call("POST", "/api/v1/nodes", {{"metadata", {{"name", "node-a"}}}}).status, 201);
  }
  // Makes an allocated claim, prepared here.
  void AddClaim(const std::string& name, const std::vector<std::string>& devices) {
    const Json request = {
        {"name", "r"},
        {"exactly", {{"deviceClassName", "neuron.aws.com"}, {"count", devices.size()}}}};
    Json claim = Call("POST", kClaims,
                      {{"metadata", {{"name", name}}},
                       {"spec", {{"devices", {{"requests", Json::array({request})}}}}}})
                     .body;
    Json results = Json::array();
    PreparedClaim prepared;
    prepared.grant.claim_uid = claim["metadata"]["uid"];
    prepared.grant.name_space = "default";
    prepared.grant.name = name;
    for (const std::string& device : devices) {
      results.push_back(
          {{"request", "r"}, {"driver", kDriver}, {"pool", "node-a"}, {"device", device}});
      prepared.devices.push_back({.request = "r", .pool = "node-a", .device = device});
    }
    claim["status"] = {{"allocation", {{"devices", {{"results", results}}}}}};
    EXPECT_EQ(Call("PUT", kClaims + "/" + name + "/status", claim).status, 200);
    checkpoint_.claims[prepared.grant.claim_uid] = prepared;
  }
  absl::Status Report(const std::map<int, std::string>& faults) {
    clock_.Advance(std::chrono::seconds(60));
    return reporter_.Report(checkpoint_, PoolWith(faults), clock_.WallNow());
  }
  Json Claim(const std::string& name) { return Call("GET", kClaims + "/" + name).body; }
  // "neuron-device-0 False HbmUncorrectable" for each device of the claim's status.
  std::vector<std::string> Conditions(const std::string& name) {
    std::vector<std::string> out;
    for (const Json& device : Claim(name)["status"].value("devices", Json::array())) {
      const Json& condition = device.at("conditions").at(0);
      EXPECT_EQ(condition.at("type"), "Healthy");
      out.push_back(fmt::format("{} {} {}", device.at("device").get<std::string>(),
                                condition.at("status").get<std::string>(),
                                condition.at("reason").get<std::string>()));
    }
    return out;
  }
  // "Node DeviceUnhealthy: …", sorted.
  std::vector<std::string> Events() {
    std::vector<std::string> out;
    const testing::Answer events = Call("GET", "/api/v1/namespaces/default/events");
    for (const Json& event : events.body.at("items")) {
      out.push_back(fmt::format("{} {}: {}", event["involvedObject"]["kind"].get<std::string>(),
                                event["reason"].get<std::string>(),
                                event["message"].get<std::string>()));
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  controller::apiserver::InProcessTransport in_process_{*server_, clock_, "dra-plugin"};
  testing::InterceptedTransport transport_{in_process_};
  HealthReporter reporter_{transport_, "node-a"};
  Checkpoint checkpoint_;
};

TEST_F(HealthReporterTest, AClaimOnWorkingDevicesIsLeftAlone) {
  AddClaim("train", {"neuron-device-0", "neuron-device-1"});
  const std::string version = Claim("train")["metadata"]["resourceVersion"];
  ASSERT_TRUE(Report({}).ok());
  ASSERT_TRUE(Report({{3, "dma"}}).ok()) << "of another chip";
  EXPECT_EQ(Claim("train")["metadata"]["resourceVersion"], version);
}

TEST_F(HealthReporterTest, AFaultAndItsRepairAreConditionsAndEvents) {
  AddClaim("train", {"neuron-device-0", "neuron-device-1"});
  ASSERT_TRUE(Report({}).ok());
  ASSERT_TRUE(Report({{1, "hbm-uncorrectable"}}).ok());
  EXPECT_THAT(Conditions("train"), ElementsAre("neuron-device-0 True Working",
                                               "neuron-device-1 False HbmUncorrectable"));
  const Json condition = Claim("train")["status"]["devices"][1]["conditions"][0];
  EXPECT_EQ(condition["message"], "the device has the fault hbm-uncorrectable");
  EXPECT_EQ(condition["lastTransitionTime"], FormatTime(clock_.WallNow()));
  EXPECT_THAT(
      Events(),
      ElementsAre(
          "Node DeviceUnhealthy: neuron-device-1 has the fault hbm-uncorrectable",
          "ResourceClaim DeviceUnhealthy: neuron-device-1 has the fault hbm-uncorrectable"));
  ASSERT_TRUE(Report({}).ok());
  EXPECT_THAT(Conditions("train"),
              ElementsAre("neuron-device-0 True Working", "neuron-device-1 True Working"));
  EXPECT_EQ(Events().size(), 4U);
  EXPECT_EQ(Events()[0], "Node DeviceHealthy: all devices work");
}

TEST_F(HealthReporterTest, AnotherFaultIsNoTransition) {
  AddClaim("train", {"neuron-device-0"});
  ASSERT_TRUE(Report({{0, "dma"}}).ok());
  const std::string since = FormatTime(clock_.WallNow());
  ASSERT_TRUE(Report({{0, "dead"}}).ok());
  EXPECT_THAT(Conditions("train"), ElementsAre("neuron-device-0 False Dead"));
  EXPECT_EQ(Claim("train")["status"]["devices"][0]["conditions"][0]["lastTransitionTime"], since);
}

TEST_F(HealthReporterTest, WhatIsKnownCostsNoCall) {
  AddClaim("train", {"neuron-device-0"});
  ASSERT_TRUE(Report({{0, "dma"}}).ok());
  transport_.TakeLog();
  ASSERT_TRUE(Report({{0, "dma"}}).ok());
  EXPECT_THAT(transport_.TakeLog(), IsEmpty());
}

TEST_F(HealthReporterTest, ARepairWhileThePluginWasAwayIsShownByTheNextOne) {
  AddClaim("train", {"neuron-device-0"});
  ASSERT_TRUE(Report({{0, "dma"}}).ok());
  HealthReporter next(transport_, "node-a");
  ASSERT_TRUE(next.Report(checkpoint_, PoolWith({}), clock_.WallNow()).ok());
  EXPECT_THAT(Conditions("train"), ElementsAre("neuron-device-0 True Working"));
}

TEST_F(HealthReporterTest, AClaimGoneOrReplacedDoesNotStopTheReport) {
  AddClaim("gone", {"neuron-device-0"});
  AddClaim("train", {"neuron-device-0"});
  EXPECT_EQ(Call("DELETE", kClaims + "/gone").status, 200);
  EXPECT_EQ(
      Call("POST", kClaims, {{"metadata", {{"name", "gone"}}}, {"spec", Json::object()}}).status,
      201);
  ASSERT_TRUE(Report({{0, "dma"}}).ok());
  EXPECT_THAT(Conditions("gone"), IsEmpty());
  EXPECT_THAT(Conditions("train"), ElementsAre("neuron-device-0 False Dma"));
}

TEST_F(HealthReporterTest, WhatFailedIsToldByTheNextReport) {
  AddClaim("train", {"neuron-device-0"});
  transport_.refuse = [](const kube::Request& request) { return request.method == "PATCH"; };
  EXPECT_THAT(std::string(Message(Report({{0, "dma"}}))),
              HasSubstr("claim default/train: the API server is away"));
  EXPECT_THAT(Events(), ElementsAre(HasSubstr("Node DeviceUnhealthy")));
  transport_.refuse = nullptr;
  ASSERT_TRUE(Report({{0, "dma"}}).ok());
  EXPECT_THAT(Conditions("train"), ElementsAre("neuron-device-0 False Dma"));
}

// Answers every read of a claim with the same object, and passes other requests on.
class OneClaim final : public kube::Transport {
 public:
  explicit OneClaim(kube::Transport& below) : below_(below) {}
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    const bool reads = request.method == "GET" && request.target.starts_with(kClaims);
    return reads ? kube::Response{.status = 200, .headers = {}, .body = object.dump()}
                 : below_.Send(request);
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, const kube::LineSink&,
                                        std::chrono::milliseconds) override {
    return Unavailable("no watches here");
  }
  Json object;

 private:
  kube::Transport& below_;
};

// Found by fuzzing: a broken answer could end the plugin.
TEST_F(HealthReporterTest, AStatusThatIsNoneIsWrittenAnew) {
  AddClaim("train", {"neuron-device-0"});
  OneClaim odd(transport_);
  const Json condition = {{"type", "Healthy"}, {"status", 1}, {"lastTransitionTime", 2}};
  const Json device = {{"driver", kDriver}, {"pool", "node-a"}, {"device", "neuron-device-0"}};
  for (Json devices : {Json::array({5}), Json::array({{{"driver", 5}}}), Json::array({device})}) {
    if (devices[0] == device) devices[0]["conditions"] = Json::array({5, condition});
    odd.object = Claim("train");
    odd.object["status"]["devices"] = devices;
    HealthReporter reporter(odd, "node-a");
    const absl::Status told =
        reporter.Report(checkpoint_, PoolWith({{0, "dma"}}), clock_.WallNow());
    EXPECT_TRUE(told.ok()) << told;
    EXPECT_THAT(Conditions("train"), ElementsAre("neuron-device-0 False Dma"));
  }
}

TEST_F(HealthReporterTest, AServerThatIsAwayIsAskedOnce) {
  for (int i = 0; i < 4; ++i) {
    AddClaim(fmt::format("c{}", i), {fmt::format("neuron-device-{}", i)});
  }
  transport_.refuse = [](const kube::Request&) { return true; };
  EXPECT_TRUE(absl::IsUnavailable(Report({{0, "dma"}, {2, "dma"}})));
  EXPECT_THAT(transport_.TakeLog(), ElementsAre("GET /api/v1/nodes/node-a"));
  transport_.refuse = nullptr;
  ASSERT_TRUE(Report({{0, "dma"}, {2, "dma"}}).ok());
  EXPECT_THAT(Conditions("c2"), ElementsAre("neuron-device-2 False Dma"));
}

}  // namespace
}  // namespace tahoma::dra

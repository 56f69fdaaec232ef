// An API server with its controllers in a temporary folder, and a fleet that acts when the test
// says.
//
//   class MineTest : public FleetFixture {};
//   TEST_F(MineTest, Publishes) {
//     const auto fleet = NewFleet(12);
//     fleet->RunDue();
//     EXPECT_EQ(Items(kNodesPath).size(), 12U);
//   }
//
// Thread safety: one thread.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/apiserver/controllers/controllers.h"
#include "controller/apiserver/http/in_process_transport.h"
#include "sim-node/fleet/fleet.h"
#include "tests/support/api_fixture.h"
#include "tests/support/intercepted_transport.h"

namespace tahoma::sim {

inline constexpr const char* kNodesPath = "/api/v1/nodes";
inline constexpr const char* kLeasesPath =
    "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
inline constexpr const char* kSlicesPath = "/apis/resource.k8s.io/v1/resourceslices";

class FleetFixture : public testing::ApiFixture {
 protected:
  // Chips only; one instance in four has no UltraServer.
  static FleetPlan SmallPlan(std::uint32_t nodes) {
    return {.nodes = nodes,
            .types = *ParseFleetTypes({{"trn2u.48xlarge", "3"}, {"trn2.48xlarge", "1"}}),
            .publish = {.chips = true, .lnc1 = false, .lnc2 = false, .node = false}};
  }

  std::unique_ptr<Fleet> NewFleet(FleetPlan plan) {
    const auto say = [this](std::string_view line) { said_.emplace_back(line); };
    return std::make_unique<Fleet>(
        FleetOptions{.plan = std::move(plan)},
        Fleet::Ports{.transport = api_, .clock = clock_, .seed = 1, .log = say, .warn = say});
  }
  std::unique_ptr<Fleet> NewFleet(std::uint32_t nodes) { return NewFleet(SmallPlan(nodes)); }

  std::vector<Json> Items(const std::string& path) {
    const testing::Answer list = Call("GET", path);
    EXPECT_EQ(list.status, 200) << list.text;
    return list.body.at("items").get<std::vector<Json>>();
  }
  std::map<std::string, Json> ByName(const std::string& path) {
    std::map<std::string, Json> all;
    for (Json& item : Items(path)) all[item.at("metadata").at("name")] = item;
    return all;
  }
  // Returns every object with its version: an object that nobody wrote keeps its version.
  std::map<std::string, std::string> Versions(const std::string& path) {
    std::map<std::string, std::string> all;
    for (const auto& [name, item] : ByName(path)) {
      all[name] = item.at("metadata").at("resourceVersion");
    }
    return all;
  }
  static std::string ReadyOf(const Json& node) {
    for (const Json& condition : node.at("status").at("conditions")) {
      if (condition.at("type") == "Ready") return condition.at("status");
    }
    return "";
  }

  // Lets time pass while the fleet acts every second.
  void Pass(Fleet& fleet, std::chrono::seconds duration) {
    for (std::chrono::seconds s{0}; s < duration; ++s) {
      clock_.Advance(std::chrono::seconds(1));
      fleet.RunDue();
    }
  }
  // Runs kube-controller-manager's controllers on the server's objects.
  void RunControllers() {
    if (!controllers_) {
      controllers_ = std::make_unique<controller::apiserver::Controllers>(
          [this] { return server_->Kinds(); }, server_->objects(), in_process_);
    }
    controllers_->Step(clock_.WallNow(), 1'000'000);
  }

  controller::apiserver::InProcessTransport in_process_{*server_, clock_, "sim-node"};
  testing::InterceptedTransport api_{in_process_};
  std::unique_ptr<controller::apiserver::Controllers> controllers_;
  std::vector<std::string> said_;
};

}  // namespace tahoma::sim

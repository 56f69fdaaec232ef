// How a pod's life looks from outside when its runner starts again, and what holds for every life.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lib/base/status.h"
#include "sim-node/podrunner/pod_machine.h"

namespace tahoma::sim {
namespace {

using nlohmann::json;
using std::chrono::seconds;

constexpr WallTime kStart{std::chrono::hours(24 * 365 * 50)};

json PodJson(const std::string& restart_policy = "Always") {
  return {{"metadata", {{"name", "p"}, {"namespace", "default"}, {"uid", "u-1"}}},
          {"spec",
           {{"nodeName", "node-0"},
            {"restartPolicy", restart_policy},
            {"containers", json::array({{{"name", "main"}, {"image", "img"}}})}}}};
}

PodMachine Make(const json& pod) {
  return PodMachine(*ParsePod(pod), ParseHistory(pod),
                    {.host_ip = "127.0.0.1", .pod_ip = "127.0.0.1"});
}

json ConditionOf(const json& status, const std::string& type) {
  for (const json& condition : status["conditions"]) {
    if (condition["type"] == type) return condition;
  }
  return nullptr;
}

// The defect: what the one did was told of the other, and the pod hung with a program that ran.
TEST(PodLifeTest, AnInitContainerAndAContainerOfOneNameAreRefused) {
  json object = PodJson();
  object["spec"]["initContainers"] = {{{"name", "main"}}};
  const absl::Status refused = ParsePod(object).status();
  EXPECT_NE(Message(refused).find("two containers named main"), std::string_view::npos) << refused;
}

}  // namespace
}  // namespace tahoma::sim

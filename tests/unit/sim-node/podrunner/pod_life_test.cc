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

// The defects: with every start of the runner all conditions had changed just now, and the time at
// which the scheduler had placed the pod was lost.
TEST(PodLifeTest, AConditionKeepsItsTimeWhileItsStatusIsTheSame) {
  json object = PodJson("Never");
  object["status"]["conditions"] =
      json::array({{{"type", "PodScheduled"},
                    {"status", "True"},
                    {"lastTransitionTime", "2019-01-01T00:00:00Z"}},
                   {{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", "not a time"}},
                   {{"type", 3}},
                   "nonsense"});
  PodMachine first = Make(object);
  first.Start(kStart);
  first.OnStarted("main", 0, "tahoma://1", kStart + seconds(1));
  first.OnExited("main", 0, {.code = 0}, kStart + seconds(2));
  EXPECT_EQ(ConditionOf(first.Status(), "PodScheduled")["lastTransitionTime"],
            "2019-01-01T00:00:00Z");
  EXPECT_EQ(ConditionOf(first.Status(), "Ready")["lastTransitionTime"],
            FormatTime(kStart + seconds(2)));
  object["status"] = first.Status();
  PodMachine second = Make(object);
  second.Start(kStart + seconds(100));
  EXPECT_EQ(second.Status(), first.Status()) << "nothing has changed";
}

TEST(PodLifeTest, AConditionThatChangedWhileNobodyLookedHasChangedAtTheStart) {
  json object = PodJson();
  PodMachine first = Make(object);
  first.Start(kStart);
  first.OnStarted("main", 0, "tahoma://1", kStart + seconds(1));
  object["status"] = first.Status();
  PodMachine second = Make(object);
  second.Start(kStart + seconds(100));
  const json ready = ConditionOf(second.Status(), "Ready");
  EXPECT_EQ(ready["status"], "False");
  EXPECT_EQ(ready["lastTransitionTime"], FormatTime(kStart + seconds(100)));
  EXPECT_EQ(ConditionOf(second.Status(), "Initialized")["lastTransitionTime"], FormatTime(kStart));
}

// The defect: an attempt that was only meant to start counted as a restart, and once more after
// the runner had begun anew.
TEST(PodLifeTest, ARestartCountsOnceTheContainerRuns) {
  json object = PodJson();
  PodMachine pod = Make(object);
  const auto restarts = [](const PodMachine& of) {
    return of.Status()["containerStatuses"][0]["restartCount"].get<int>();
  };
  pod.Start(kStart);
  pod.OnStarted("main", 0, "tahoma://0", kStart);
  pod.OnExited("main", 0, {.code = 1}, kStart);
  EXPECT_EQ(restarts(pod), 0) << "it is being started";
  pod.OnStartFailed("main", 1, {"CreateContainerError", "no"}, kStart);
  EXPECT_EQ(restarts(pod), 0);
  object["status"] = pod.Status();
  PodMachine next = Make(object);
  next.Start(kStart + seconds(1));
  next.OnStarted("main", 1, "tahoma://1", kStart + seconds(1));
  EXPECT_EQ(restarts(next), 1) << "it ran twice";
}

// The defect: it ended as a container that waits to be started, and the pod as a failed one.
TEST(PodLifeTest, AContainerThatIsNotRestartedAnyMoreShowsHowItEnded) {
  for (const int code : {0, 7}) {
    SCOPED_TRACE(code);
    PodMachine pod = Make(PodJson());
    pod.Start(kStart);
    pod.OnStarted("main", 0, "tahoma://0", kStart);
    pod.OnExited("main", 0, {.code = code}, kStart);
    pod.OnStarted("main", 1, "tahoma://1", kStart);
    pod.OnExited("main", 1, {.code = code}, kStart);
    json main = pod.Status()["containerStatuses"][0];
    ASSERT_EQ(main["state"]["waiting"]["reason"], "CrashLoopBackOff");
    ASSERT_EQ(main["restartCount"], 1);
    pod.OnDeletion(seconds(30), kStart + seconds(1));
    EXPECT_TRUE(pod.finished());
    main = pod.Status()["containerStatuses"][0];
    EXPECT_EQ(main["state"]["terminated"]["exitCode"], code) << main;
    EXPECT_EQ(main["state"]["terminated"]["containerID"], "tahoma://1");
    EXPECT_EQ(main["restartCount"], 1);
    EXPECT_EQ(pod.phase(), code == 0 ? "Succeeded" : "Failed");
    EXPECT_EQ(pod.NextDeadline(), std::nullopt);
  }
}

// The defect: what the one did was told of the other, and the pod hung with a program that ran.
TEST(PodLifeTest, AnInitContainerAndAContainerOfOneNameAreRefused) {
  json object = PodJson();
  object["spec"]["initContainers"] = {{{"name", "main"}}};
  const absl::Status refused = ParsePod(object).status();
  EXPECT_NE(Message(refused).find("two containers named main"), std::string_view::npos) << refused;
}

TEST(PodLifeTest, AHistoryOfNonsenseHarmsNobody) {
  for (
      const char* status :
      {R"({"containerStatuses": [{"name": "main", "restartCount": -4, "state": {"running": {}}}]})",
       R"({"containerStatuses": [{"name": "main", "restartCount": "x", "state":
            {"terminated": {"exitCode": "a", "finishedAt": 3}}}]})",
       R"({"phase": "Dancing", "containerStatuses": [{"name": 3}, null],
            "initContainerStatuses": {"a": 1}})",
       R"({"containerStatuses": [{"name": "main", "state": {"running": {"startedAt": "x"}},
            "lastState": {"terminated": []}}]})"}) {
    SCOPED_TRACE(status);
    json object = PodJson("Never");
    object["status"] = json::parse(status);
    PodMachine pod = Make(object);
    pod.Start(kStart);
    EXPECT_GE(pod.Status()["containerStatuses"][0]["restartCount"], 0);
    pod.OnDeletion(seconds(0), kStart);
    pod.OnStarted("main", pod.restarts("main"), "id", kStart);
    pod.OnExited("main", pod.restarts("main"), {.code = 137}, kStart);
    EXPECT_TRUE(pod.finished());
  }
}

}  // namespace
}  // namespace tahoma::sim

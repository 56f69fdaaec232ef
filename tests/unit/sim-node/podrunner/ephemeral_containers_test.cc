// Ephemeral containers, which kubectl debug adds to a running pod.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "tests/unit/sim-node/podrunner/node_story.h"

namespace tahoma::sim {
namespace {

using json = Json;
using std::chrono::seconds;

json Debugged(json pod, const std::string& name, const json& more = json::object()) {
  json container = {{"name", name}, {"image", "busybox"}};
  for (const auto& [key, value] : more.items()) container[key] = value;
  pod["spec"]["ephemeralContainers"].push_back(container);
  return pod;
}

class EphemeralContainersTest : public NodePodsTest {
 protected:
  // The status that was written last.
  json StatusOf(const std::string& pod) const { return pods_.Find("uid-" + pod)->Status(); }
  json StateOf(const std::string& pod, std::size_t index = 0) const {
    return StatusOf(pod)["ephemeralContainerStatuses"][index]["state"];
  }
  NodeActions Started(const std::string& container) {
    return pods_.OnStarted("uid-a", container, 0, "tahoma://" + container, now_);
  }
  NodeActions Ended(const std::string& container, int code = 0) {
    return pods_.OnExited("uid-a", container, 0, {.code = code}, now_);
  }
};

TEST_F(EphemeralContainersTest, OneIsStartedBesideTheOthersAndNeverAgain) {
  RunPod(pods_, "a", {});
  const json pod = Debugged(PodJson("a", {}), "debugger", {{"stdin", true}, {"tty", true}});
  EXPECT_EQ(Deeds(pods_.OnPod(pod, now_)), (Story{"run a"}));
  EXPECT_TRUE(pods_.Find("uid-a")->spec().stdin_uses.at("debugger").tty);
  EXPECT_EQ(Deeds(pods_.OnPod(pod, now_)), Story{}) << "the server shows the pod again";
  Started("debugger");
  EXPECT_TRUE(StateOf("a").contains("running"));
  EXPECT_EQ(StatusOf("a")["containerStatuses"].size(), 1U);
  EXPECT_EQ(Deeds(Ended("debugger", 3)), Story{});
  EXPECT_EQ(StateOf("a")["terminated"]["exitCode"], 3);
  EXPECT_EQ(StatusOf("a")["phase"], "Running");
  EXPECT_EQ(StatusOf("a")["ephemeralContainerStatuses"][0]["ready"], false);
  EXPECT_EQ(Deeds(pods_.OnPod(Debugged(pod, "second"), now_)), (Story{"run a"}));
}

TEST_F(EphemeralContainersTest, PhaseAndReadinessAreThoseOfTheOtherContainers) {
  RunPod(pods_, "a", {});
  const json ready = StatusOf("a")["conditions"];
  pods_.OnPod(Debugged(PodJson("a", {}), "debugger"), now_);
  EXPECT_EQ(StatusOf("a")["conditions"], ready) << "while it is being started";
  pods_.OnStartFailed("uid-a", "debugger", 0, {"ErrImagePull", "no such image"}, now_);
  EXPECT_EQ(StatusOf("a")["conditions"], ready);
  EXPECT_EQ(StatusOf("a")["phase"], "Running");
  EXPECT_EQ(StateOf("a")["waiting"]["reason"], "ErrImagePull");
  now_ += kFirstBackOff;
  EXPECT_EQ(Deeds(pods_.OnTick(now_)), (Story{"run a"})) << "the image is asked for again";
  Started("debugger");
  Ended("debugger", 1);
  EXPECT_EQ(Deeds(Ended("main")), Story{});
  EXPECT_EQ(StatusOf("a")["phase"], "Succeeded") << "a debugger's failure is not the pod's";
}

TEST_F(EphemeralContainersTest, OneThatRunsOnEndsWithThePodsOtherContainers) {
  RunPod(pods_, "a", {"chips"});
  pods_.OnPod(Debugged(PodJson("a", {"chips"}), "debugger"), now_);
  Started("debugger");
  EXPECT_EQ(Deeds(Ended("main")), (Story{"term a"})) << "devices are in use until it has ended";
  EXPECT_EQ(StatusOf("a")["phase"], "Running");
  now_ += seconds(30);
  EXPECT_EQ(Deeds(pods_.OnTick(now_)), (Story{"kill a"}));
  EXPECT_EQ(Deeds(Ended("debugger", 137)), (Story{"unprepare chips", "save"}));
  pods_.OnClaimUnprepared("uid-chips", absl::OkStatus(), now_);
  EXPECT_EQ(StatusOf("a")["phase"], "Succeeded");
}

TEST_F(EphemeralContainersTest, OneThatIgnoresItsSignalIsKilledWhenThePodIsDeleted) {
  RunPod(pods_, "a", {});
  const json pod = Debugged(PodJson("a", {}), "debugger");
  pods_.OnPod(pod, now_);
  Started("debugger");
  EXPECT_EQ(Deeds(pods_.OnPod(Deleted(pod, 1), now_)), (Story{"term a", "term a"}));
  EXPECT_EQ(Deeds(Ended("main")), Story{});
  now_ += seconds(1);
  EXPECT_EQ(Deeds(pods_.OnTick(now_)), (Story{"kill a"}));
  EXPECT_EQ(Deeds(Ended("debugger", 137)), (Story{"delete a"}));
}

TEST_F(EphemeralContainersTest, OneGetsTheDevicesOfItsTargetElseOfTheFirstContainer) {
  json pod = PodJson("a", {"chips"});
  pod["spec"]["containers"].push_back({{"name", "side"}, {"image", "img"}});
  pods_.OnPod(pod, now_);
  pods_.OnClaimsRead("uid-a", {{Facts("chips", {"a"})}}, now_);
  pods_.OnClaimPrepared("uid-chips", DevicesOf("chips"), now_);
  for (const char* name : {"main", "side"}) Started(name);
  pod = Debugged(pod, "of-main", {{"targetContainerName", "main"}});
  EXPECT_EQ(Deeds(pods_.OnPod(pod, now_)), (Story{"run a chips"}));
  pod = Debugged(pod, "of-side", {{"targetContainerName", "side"}});
  EXPECT_EQ(Deeds(pods_.OnPod(pod, now_)), (Story{"run a"}));
  EXPECT_EQ(Deeds(pods_.OnPod(Debugged(pod, "of-any"), now_)), (Story{"run a chips"}));
}

TEST_F(EphemeralContainersTest, OneWaitsForTheClaimsOfThePod) {
  pods_.OnPod(PodJson("a", {"chips"}), now_);
  EXPECT_EQ(Deeds(pods_.OnPod(Debugged(PodJson("a", {"chips"}), "debugger"), now_)), Story{});
  pods_.OnClaimsRead("uid-a", {{Facts("chips", {"a"})}}, now_);
  EXPECT_EQ(Deeds(pods_.OnClaimPrepared("uid-chips", DevicesOf("chips"), now_)),
            (Story{"run a chips", "run a chips"}));
}

TEST_F(EphemeralContainersTest, TheNextRunnerRunsNoneAgain) {
  RunPod(pods_, "a", {});
  json pod = Debugged(PodJson("a", {}), "debugger");
  pods_.OnPod(pod, now_);
  Started("debugger");
  pod["spec"]["restartPolicy"] = "Always";
  pod["status"] = StatusOf("a");
  NodePods next = Make();
  EXPECT_EQ(Deeds(next.OnPod(pod, now_)), (Story{"run a"})) << "main, and nothing else";
  const json status = next.Find("uid-a")->Status()["ephemeralContainerStatuses"][0];
  EXPECT_EQ(status["state"]["terminated"]["reason"], "ContainerStatusUnknown");
}

// The defect that threatens: what somebody adds makes the pod unreadable, and its deletion is not
// seen any more.
TEST_F(EphemeralContainersTest, WhatCannotBeReadIsLeftOutAndThePodEndsAsBefore) {
  RunPod(pods_, "a", {});
  json pod = PodJson("a", {});
  pod["spec"]["ephemeralContainers"] = {7,
                                        nullptr,
                                        {{"name", 7}},
                                        {{"name", "../up"}, {"image", "i"}},
                                        {{"name", "main"}, {"image", "i"}},
                                        {{"name", "x"}, {"command", "sh"}},
                                        {{"name", "y"}, {"stdin", "yes"}},
                                        {{"name", "z"}, {"env", {{{"value", "nameless"}}}}}};
  for (int i = 0; i < 100; ++i) pod = Debugged(pod, fmt::format("d{}", i));
  const Story story = Deeds(pods_.OnPod(pod, now_));
  EXPECT_EQ(story.size(), kube::kContainersMost);
  EXPECT_EQ(story.front(), "run a");
  pod["spec"]["ephemeralContainers"] = "none";
  EXPECT_EQ(Deeds(pods_.OnPod(pod, now_)), Story{});
  EXPECT_EQ(Deeds(pods_.OnPod(Deleted(pod), now_)).front(), "term a");
}

// Whatever happens in whatever order: a deleted pod is removed once nothing of it runs.
RC_GTEST_PROP(EphemeralContainersPropTest, ADeletedPodIsRemovedWhenNothingRunsAnyMore, ()) {
  NodePods pods({.host_ip = "127.0.0.1", .pod_ip = "127.0.0.1"});
  WallTime now = kStart;
  std::map<std::string, int> starting;
  std::map<std::string, int> running;
  bool removed = false;
  const auto carry = [&](const NodeActions& actions) {
    for (const NodeAction& action : actions) {
      if (const auto* run = std::get_if<RunContainer>(&action)) {
        RC_ASSERT(!removed && !starting.contains(run->container) &&
                  !running.contains(run->container));
        starting[run->container] = run->attempt;
      }
      if (std::holds_alternative<DeletePod>(action)) {
        RC_ASSERT(starting.empty() && running.empty());
        removed = true;
      }
    }
  };
  const auto step = [&](int event, bool good) {
    if (event == 0 && !starting.empty()) {
      const auto [name, attempt] = *starting.begin();
      starting.erase(starting.begin());
      if (good) running[name] = attempt;
      carry(good ? pods.OnStarted("uid-a", name, attempt, "id", now)
                 : pods.OnStartFailed("uid-a", name, attempt, {"ErrImagePull", "no"}, now));
    } else if (event == 1 && !running.empty()) {
      const auto at = good ? running.begin() : std::prev(running.end());
      const auto [name, attempt] = *at;
      running.erase(at);
      carry(pods.OnExited("uid-a", name, attempt, {.code = good ? 0 : 1}, now));
    } else if (event == 2) {
      now = std::max(now, pods.NextDeadline().value_or(now));
      carry(pods.OnTick(now));
    }
  };
  json pod = PodJson("a", {});
  pod["spec"]["restartPolicy"] = *rc::gen::element("Always", "OnFailure", "Never");
  carry(pods.OnPod(pod, now));
  const int steps = *rc::gen::inRange(0, 60);
  for (int i = 0; i < steps; ++i) {
    const int event = *rc::gen::inRange(0, 4);
    if (event == 3) {
      pod = Debugged(pod, fmt::format("d{}", i));
      carry(pods.OnPod(pod, now));
    } else {
      step(event, *rc::gen::inRange(0, 2) == 0);
    }
  }
  carry(pods.OnPod(Deleted(pod, 1), now));
  for (int i = 0; i < 300 && !removed; ++i) step(i % 3, true);
  RC_ASSERT(removed);
}

}  // namespace
}  // namespace tahoma::sim

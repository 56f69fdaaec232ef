// The life of a pod, told as what happened and what the machine wants next. Times of the restart
// back-off are the kubelet's.

#include "sim-node/podrunner/pod_machine.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "tests/unit/sim-node/podrunner/pod_json.h"

namespace tahoma::sim {
namespace {

using json = Json;
using std::chrono::seconds;
using testing::kStart;
using testing::PodJson;

json WithClaim(json pod) {
  pod["spec"]["resourceClaims"] = {{{"name", "chips"}, {"resourceClaimName", "chips-1"}}};
  return pod;
}

std::string Describe(const PodAction& action) {
  struct Visitor {
    std::string operator()(const PrepareClaims&) const { return "prepare"; }
    std::string operator()(const UnprepareClaims&) const { return "unprepare"; }
    std::string operator()(const RemovePod&) const { return "remove"; }
    std::string operator()(const StartContainer& start) const {
      return fmt::format("start {}#{}", start.container, start.attempt);
    }
    std::string operator()(const SignalContainer& signal) const {
      return fmt::format("{} {}", signal.kill ? "kill" : "term", signal.container);
    }
    std::string operator()(const RecordEvent&) const { return ""; }
  };
  return std::visit(Visitor{}, action);
}

// "start main#0, term side": the actions but for events.
std::string Describe(const PodActions& actions) {
  std::vector<std::string> texts;
  for (const PodAction& action : actions) {
    if (std::string text = Describe(action); !text.empty()) texts.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

PodMachine Make(const json& pod, const PodHistory& history = {}) {
  return PodMachine(*ParsePod(pod), history, {.host_ip = "127.0.0.1", .pod_ip = "127.0.0.1"});
}

json ContainerOf(const PodMachine& pod, int index = 0) {
  return pod.Status()["containerStatuses"][static_cast<std::size_t>(index)];
}

std::string ConditionOf(const PodMachine& pod, const std::string& type) {
  const json status = pod.Status();
  for (const json& condition : status["conditions"]) {
    if (condition["type"] == type) return condition["status"];
  }
  return "absent";
}

TEST(PodMachineTest, APodWithoutClaimsStartsAtOnceAndSucceeds) {
  PodMachine pod = Make(PodJson("Never"));
  EXPECT_EQ(Describe(pod.Start(kStart)), "start main#0");
  EXPECT_EQ(pod.phase(), "Pending");
  EXPECT_EQ(ContainerOf(pod)["state"]["waiting"]["reason"], "ContainerCreating");
  pod.OnStarted("main", 0, "tahoma://1", kStart + seconds(1));
  EXPECT_EQ(pod.phase(), "Running");
  EXPECT_EQ(ConditionOf(pod, "Ready"), "True");
  EXPECT_EQ(Describe(pod.OnExited("main", 0, {.code = 0}, kStart + seconds(2))), "");
  EXPECT_EQ(pod.phase(), "Succeeded");
  EXPECT_EQ(ConditionOf(pod, "Ready"), "False");
  const json ended = ContainerOf(pod)["state"]["terminated"];
  EXPECT_EQ(ended["reason"], "Completed");
  EXPECT_EQ(ended["exitCode"], 0);
  EXPECT_EQ(ended["containerID"], "tahoma://1");
}

TEST(PodMachineTest, ASignalledContainerShowsItsSignal) {
  PodMachine pod = Make(PodJson("Never"));
  pod.Start(kStart);
  pod.OnStarted("main", 0, "tahoma://1", kStart);
  pod.OnExited("main", 0, {.code = 139, .signal = 11}, kStart);
  EXPECT_EQ(pod.phase(), "Failed");
  EXPECT_EQ(ContainerOf(pod)["state"]["terminated"]["exitCode"], 139);
  EXPECT_EQ(ContainerOf(pod)["state"]["terminated"]["signal"], 11);
  EXPECT_EQ(ContainerOf(pod)["state"]["terminated"]["reason"], "Error");
}

TEST(PodMachineTest, ClaimsArePreparedFirstAndUnpreparedBeforeThePhaseIsFinal) {
  PodMachine pod = Make(WithClaim(PodJson("Never")));
  EXPECT_EQ(Describe(pod.Start(kStart)), "prepare");
  EXPECT_EQ(Describe(pod.OnPrepared(kStart)), "start main#0");
  pod.OnStarted("main", 0, "tahoma://1", kStart);
  EXPECT_EQ(Describe(pod.OnExited("main", 0, {.code = 0}, kStart)), "unprepare");
  EXPECT_EQ(pod.phase(), "Running");
  EXPECT_EQ(Describe(pod.OnUnprepareFailed("the plugin is away", kStart)), "");
  EXPECT_EQ(pod.phase(), "Running");
  EXPECT_EQ(pod.NextDeadline(), kStart + kFirstPrepareRetry);
  EXPECT_EQ(Describe(pod.OnTick(kStart + kFirstPrepareRetry)), "unprepare");
  EXPECT_EQ(Describe(pod.OnUnprepared(kStart + seconds(2))), "");
  EXPECT_EQ(pod.phase(), "Succeeded");
}

TEST(PodMachineTest, PreparingIsRetriedWithGrowingPauses) {
  PodMachine pod = Make(WithClaim(PodJson()));
  pod.Start(kStart);
  WallTime now = kStart;
  for (const int pause : {1, 2, 4, 8, 16, 30, 30}) {
    const PodActions actions = pod.OnPrepareFailed("claim chips-1 is not reserved", now);
    ASSERT_EQ(actions.size(), 1U);
    EXPECT_EQ(std::get<RecordEvent>(actions[0]).reason, "FailedPrepareDynamicResources");
    EXPECT_EQ(pod.NextDeadline(), now + seconds(pause));
    EXPECT_EQ(Describe(pod.OnTick(now + seconds(pause) - std::chrono::nanoseconds(1))), "");
    now += seconds(pause);
    EXPECT_EQ(Describe(pod.OnTick(now)), "prepare");
  }
  EXPECT_EQ(pod.phase(), "Pending");
}

TEST(PodMachineTest, InitContainersRunInOrder) {
  json object = PodJson("Never");
  object["spec"]["initContainers"] = {{{"name", "one"}}, {{"name", "two"}}};
  PodMachine pod = Make(object);
  EXPECT_EQ(Describe(pod.Start(kStart)), "start one#0");
  EXPECT_EQ(ContainerOf(pod)["state"]["waiting"]["reason"], "PodInitializing");
  EXPECT_EQ(ConditionOf(pod, "Initialized"), "False");
  pod.OnStarted("one", 0, "", kStart);
  EXPECT_EQ(Describe(pod.OnExited("one", 0, {}, kStart)), "start two#0");
  pod.OnStarted("two", 0, "", kStart);
  EXPECT_EQ(pod.phase(), "Pending");
  EXPECT_EQ(Describe(pod.OnExited("two", 0, {}, kStart)), "start main#0");
  EXPECT_EQ(ConditionOf(pod, "Initialized"), "True");
  EXPECT_EQ(pod.Status()["initContainerStatuses"][1]["ready"], true);
}

TEST(PodMachineTest, AFailedInitContainerFailsAPodThatNeverRestarts) {
  json object = PodJson("Never");
  object["spec"]["initContainers"] = {{{"name", "one"}}};
  PodMachine pod = Make(object);
  pod.Start(kStart);
  pod.OnStarted("one", 0, "", kStart);
  EXPECT_EQ(Describe(pod.OnExited("one", 0, {.code = 3}, kStart)), "");
  EXPECT_EQ(pod.phase(), "Failed");
}

TEST(PodMachineTest, CrashesWaitAsAKubeletMakesThemWait) {
  PodMachine pod = Make(PodJson());
  pod.Start(kStart);
  WallTime now = kStart;
  pod.OnStarted("main", 0, "", now);
  // The first crash restarts at once; then 10 s doubling to 5 minutes, from the crash on.
  EXPECT_EQ(Describe(pod.OnExited("main", 0, {.code = 1}, now)), "start main#1");
  int attempt = 1;
  for (const int pause : {10, 20, 40, 80, 160, 300, 300}) {
    pod.OnStarted("main", attempt, "", now);
    EXPECT_EQ(Describe(pod.OnExited("main", attempt, {.code = 1}, now)), "");
    EXPECT_EQ(ContainerOf(pod)["state"]["waiting"]["reason"], "CrashLoopBackOff");
    EXPECT_EQ(ContainerOf(pod)["restartCount"], attempt);
    EXPECT_EQ(ContainerOf(pod)["lastState"]["terminated"]["exitCode"], 1);
    EXPECT_EQ(pod.NextDeadline(), now + seconds(pause));
    EXPECT_EQ(pod.phase(), "Running");
    now += seconds(pause);
    EXPECT_EQ(Describe(pod.OnTick(now)), fmt::format("start main#{}", ++attempt));
  }
  EXPECT_NE(std::string(ContainerOf(pod)["state"]["waiting"]["reason"]).find("Creating"),
            std::string::npos);
}

TEST(PodMachineTest, TenQuietMinutesForgetFormerCrashes) {
  PodMachine pod = Make(PodJson());
  pod.Start(kStart);
  pod.OnStarted("main", 0, "", kStart);
  pod.OnExited("main", 0, {.code = 1}, kStart);
  pod.OnStarted("main", 1, "", kStart);
  const WallTime later = kStart + kBackOffReset + seconds(1);
  EXPECT_EQ(Describe(pod.OnExited("main", 1, {.code = 1}, later)), "start main#2");
  pod.OnStarted("main", 2, "", later);
  EXPECT_EQ(Describe(pod.OnExited("main", 2, {.code = 1}, later)), "");
  EXPECT_EQ(pod.NextDeadline(), later + kFirstBackOff);
}

TEST(PodMachineTest, OnFailureRestartsFailuresOnly) {
  PodMachine pod = Make(PodJson("OnFailure"));
  pod.Start(kStart);
  pod.OnStarted("main", 0, "", kStart);
  EXPECT_EQ(Describe(pod.OnExited("main", 0, {.code = 1}, kStart)), "start main#1");
  pod.OnStarted("main", 1, "", kStart);
  EXPECT_EQ(Describe(pod.OnExited("main", 1, {.code = 0}, kStart)), "");
  EXPECT_EQ(pod.phase(), "Succeeded");
}

TEST(PodMachineTest, AnUnknownImageShowsErrImagePullThenImagePullBackOff) {
  PodMachine pod = Make(PodJson());
  pod.Start(kStart);
  const PodActions actions =
      pod.OnStartFailed("main", 0, {"ErrImagePull", "image img is in no map"}, kStart);
  EXPECT_EQ(std::get<RecordEvent>(actions[0]).reason, "Failed");
  EXPECT_EQ(ContainerOf(pod)["state"]["waiting"]["reason"], "ErrImagePull");
  EXPECT_EQ(ContainerOf(pod)["state"]["waiting"]["message"], "image img is in no map");
  pod.OnTick(*pod.NextDeadline());
  EXPECT_EQ(ContainerOf(pod)["state"]["waiting"]["reason"], "ImagePullBackOff");
  EXPECT_EQ(pod.phase(), "Pending");
  EXPECT_EQ(pod.NextDeadline(), kStart + kFirstBackOff);
  EXPECT_EQ(Describe(pod.OnTick(kStart + kFirstBackOff)), "start main#0");
}

TEST(PodMachineTest, DeletionTermsThenKillsThenUnpreparesThenRemoves) {
  PodMachine pod = Make(WithClaim(PodJson()));
  pod.Start(kStart);
  pod.OnPrepared(kStart);
  pod.OnStarted("main", 0, "", kStart);
  EXPECT_EQ(Describe(pod.OnDeletion(seconds(5), kStart)), "term main");
  EXPECT_EQ(pod.NextDeadline(), kStart + seconds(5));
  EXPECT_EQ(Describe(pod.OnTick(kStart + seconds(4))), "");
  EXPECT_EQ(Describe(pod.OnTick(kStart + seconds(5))), "kill main");
  EXPECT_EQ(Describe(pod.OnTick(kStart + seconds(6))), "");
  EXPECT_EQ(Describe(pod.OnExited("main", 0, {.code = 137, .signal = 9}, kStart + seconds(6))),
            "unprepare");
  EXPECT_FALSE(pod.finished());
  EXPECT_EQ(Describe(pod.OnUnprepared(kStart + seconds(7))), "remove");
  EXPECT_TRUE(pod.finished());
  EXPECT_EQ(pod.phase(), "Failed");
}

TEST(PodMachineTest, AShorterGraceWins) {
  PodMachine pod = Make(PodJson());
  pod.Start(kStart);
  pod.OnStarted("main", 0, "", kStart);
  pod.OnDeletion(seconds(30), kStart);
  EXPECT_EQ(Describe(pod.OnDeletion(seconds(0), kStart + seconds(1))), "kill main");
}

TEST(PodMachineTest, DeletionWhileAContainerStartsWaitsForIt) {
  PodMachine pod = Make(PodJson());
  pod.Start(kStart);
  EXPECT_EQ(Describe(pod.OnDeletion(seconds(5), kStart)), "");
  EXPECT_EQ(Describe(pod.OnStarted("main", 0, "", kStart)), "term main");
  EXPECT_EQ(Describe(pod.OnExited("main", 0, {.code = 143, .signal = 15}, kStart)), "remove");
}

TEST(PodMachineTest, DeletionWhilePreparingUnpreparesWhatMayHaveBeenPrepared) {
  PodMachine pod = Make(WithClaim(PodJson()));
  pod.Start(kStart);
  EXPECT_EQ(Describe(pod.OnDeletion(seconds(5), kStart)), "unprepare");
  EXPECT_EQ(Describe(pod.OnPrepared(kStart)), "");  // late: it starts nothing
  EXPECT_EQ(Describe(pod.OnUnprepared(kStart)), "remove");
}

TEST(PodMachineTest, APodWhoseObjectVanishedIsKilledAndNotRemovedAgain) {
  PodMachine pod = Make(PodJson());
  pod.Start(kStart);
  pod.OnStarted("main", 0, "", kStart);
  EXPECT_EQ(Describe(pod.OnGone(kStart)), "kill main");
  EXPECT_EQ(Describe(pod.OnExited("main", 0, {.code = 137, .signal = 9}, kStart)), "");
  EXPECT_TRUE(pod.finished());
}

TEST(PodMachineTest, TheActiveDeadlineFailsThePod) {
  json object = PodJson();
  object["spec"]["activeDeadlineSeconds"] = 60;
  object["spec"]["terminationGracePeriodSeconds"] = 1;
  PodMachine pod = Make(object);
  pod.Start(kStart);
  pod.OnStarted("main", 0, "", kStart);
  EXPECT_EQ(pod.NextDeadline(), kStart + seconds(60));
  EXPECT_EQ(Describe(pod.OnTick(kStart + seconds(60))), "term main");
  EXPECT_EQ(Describe(pod.OnExited("main", 0, {.code = 0}, kStart + seconds(61))), "");
  EXPECT_EQ(pod.phase(), "Failed");
  EXPECT_EQ(pod.Status()["reason"], "DeadlineExceeded");
}

TEST(PodMachineTest, ANodeShutdownFailsThePodAndSaysSo) {
  PodMachine pod = Make(PodJson());
  pod.Start(kStart);
  pod.OnStarted("main", 0, "", kStart);
  EXPECT_EQ(Describe(pod.OnNodeShutdown(seconds(3), kStart)), "term main");
  pod.OnExited("main", 0, {.code = 143, .signal = 15}, kStart);
  EXPECT_EQ(pod.phase(), "Failed");
  EXPECT_EQ(pod.Status()["reason"], "Terminated");
}

TEST(PodMachineTest, EventsOfFormerAttemptsAreIgnored) {
  PodMachine pod = Make(PodJson());
  pod.Start(kStart);
  pod.OnStarted("main", 0, "", kStart);
  pod.OnExited("main", 0, {.code = 1}, kStart);
  pod.OnStarted("main", 1, "", kStart);
  EXPECT_TRUE(pod.OnExited("main", 0, {.code = 1}, kStart).empty());
  EXPECT_TRUE(pod.OnStarted("nobody", 0, "", kStart).empty());
  EXPECT_EQ(pod.phase(), "Running");
}

TEST(PodMachineTest, AnEndedPodIsNotRunAgainAfterARestartOfTheRunner) {
  PodMachine first = Make(WithClaim(PodJson("Never")));
  first.Start(kStart);
  first.OnPrepared(kStart);
  first.OnStarted("main", 0, "tahoma://1", kStart);
  first.OnExited("main", 0, {.code = 4}, kStart);
  first.OnUnprepared(kStart);
  json object = WithClaim(PodJson("Never"));
  object["status"] = first.Status();
  PodMachine second = Make(object, ParseHistory(object));
  EXPECT_EQ(Describe(second.Start(kStart + seconds(9))), "");
  EXPECT_EQ(second.phase(), "Failed");
  EXPECT_EQ(ContainerOf(second)["state"]["terminated"]["exitCode"], 4);
  EXPECT_EQ(Describe(second.OnDeletion(seconds(0), kStart + seconds(10))), "remove");
}

TEST(PodMachineTest, ARunningContainerOfAFormerRunnerCountsAsKilled) {
  PodMachine first = Make(PodJson());
  first.Start(kStart);
  first.OnStarted("main", 0, "tahoma://1", kStart);
  json object = PodJson();
  object["status"] = first.Status();
  PodMachine second = Make(object, ParseHistory(object));
  EXPECT_EQ(Describe(second.Start(kStart + seconds(9))), "start main#1");
  EXPECT_EQ(ContainerOf(second)["lastState"]["terminated"]["reason"], "ContainerStatusUnknown");
  EXPECT_EQ(second.Status()["startTime"], first.Status()["startTime"]);

  json once = PodJson("Never");
  once["status"] = first.Status();
  PodMachine never = Make(once, ParseHistory(once));
  EXPECT_EQ(Describe(never.Start(kStart + seconds(9))), "");
  EXPECT_EQ(never.phase(), "Failed");
}

TEST(PodMachineTest, PodsThatCannotBeReadAreRefusedByField) {
  const std::vector<std::pair<json, std::string>> bad = {
      {ParseJson(R"({"metadata":{"name":"p","uid":"u"},"spec":{}})"), "spec.containers is empty"},
      {ParseJson(R"({"spec":{"containers":[{"name":"a"}]}})"), "metadata.name"},
      {ParseJson(R"({"metadata":{"name":"p","uid":"u"},"spec":{"containers":[{}]}})"),
       "containers[0]: name"},
      {ParseJson(R"({"metadata":{"name":"p","uid":"u"},"spec":{"containers":3}})"),
       "spec.containers: is a number, must be a list"},
      {ParseJson(R"({"metadata":{"name":"p","uid":"u"},
                       "spec":{"restartPolicy":"Maybe","containers":[{"name":"a"}]}})"),
       "Maybe"},
      {ParseJson(R"({"metadata":{"name":"p","uid":"u"},"spec":{"containers":[{"name":"a"}],
                       "initContainers":[{"name":"s","restartPolicy":"Always"}]}})"),
       "sidecar"},
  };
  for (const auto& [object, expected] : bad) {
    const absl::Status refused = ParsePod(object).status();
    EXPECT_NE(Message(refused).find(expected), std::string_view::npos) << refused;
  }
}

// Whatever happens in whatever order: a container is never started twice at the same time, nothing
// runs without prepared claims, and after deletion everything ends.
RC_GTEST_PROP(PodMachineProperty, EveryOrderOfEventsEndsClean, ()) {
  json object = WithClaim(PodJson(*rc::gen::element("Always", "OnFailure", "Never")));
  object["spec"]["containers"].push_back({{"name", "side"}});
  PodMachine pod = Make(object);
  WallTime now = kStart;
  std::map<std::string, int> starting;
  std::map<std::string, int> running;
  bool prepared = false;
  bool preparing = false;
  bool unpreparing = false;
  bool removed = false;
  const auto carry = [&](const PodActions& actions) {
    for (const PodAction& action : actions) {
      if (std::holds_alternative<PrepareClaims>(action)) preparing = true;
      if (std::holds_alternative<UnprepareClaims>(action)) {
        RC_ASSERT(starting.empty() && running.empty());
        unpreparing = true;
      }
      if (const auto* start = std::get_if<StartContainer>(&action)) {
        RC_ASSERT(prepared && !unpreparing);
        RC_ASSERT(!starting.contains(start->container) && !running.contains(start->container));
        starting[start->container] = start->attempt;
      }
      if (std::holds_alternative<RemovePod>(action)) removed = true;
    }
  };
  const auto step = [&](int event, bool good) {
    if (event == 0 && preparing) {
      preparing = false;
      prepared = prepared || good;
      carry(good ? pod.OnPrepared(now) : pod.OnPrepareFailed("no", now));
    } else if (event == 1 && !starting.empty()) {
      const auto [name, attempt] = *starting.begin();
      starting.erase(starting.begin());
      if (good) running[name] = attempt;
      carry(good ? pod.OnStarted(name, attempt, "id", now)
                 : pod.OnStartFailed(name, attempt, {"ErrImagePull", "no"}, now));
    } else if (event == 2 && !running.empty()) {
      const auto [name, attempt] = *running.begin();
      running.erase(running.begin());
      carry(pod.OnExited(name, attempt, {.code = good ? 0 : 1}, now));
    } else if (event == 3 && unpreparing) {
      unpreparing = false;
      carry(good ? pod.OnUnprepared(now) : pod.OnUnprepareFailed("no", now));
    } else if (event == 4) {
      now = std::max(now, pod.NextDeadline().value_or(now));
      carry(pod.OnTick(now));
    }
  };
  carry(pod.Start(now));
  const int steps = *rc::gen::inRange(0, 60);
  for (int i = 0; i < steps; ++i) step(*rc::gen::inRange(0, 5), *rc::gen::inRange(0, 2) == 0);
  carry(pod.OnDeletion(seconds(1), now));
  for (int i = 0; i < 40 && !removed; ++i) step(i % 5, true);
  RC_ASSERT(removed && pod.finished());
  RC_ASSERT(starting.empty() && running.empty());
}

}  // namespace
}  // namespace tahoma::sim

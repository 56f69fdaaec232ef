// The life of a pod as seen from outside across restarts of its runner, and the rules of every
// life.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "sim-node/podrunner/pod_machine.h"
#include "tests/unit/sim-node/podrunner/pod_json.h"

namespace tahoma::sim {
namespace {

using json = Json;
using std::chrono::seconds;
using testing::kStart;
using testing::PodJson;

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

// The defects: at every start of the runner all conditions seemed to have changed just now, and the
// time at which the scheduler had placed the pod was lost.
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

// The defect: an attempt counted as a restart before it ran, and once more after a restart of the
// runner.
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

// The defect: the container ended as a container that waits for its start, and the pod as failed.
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
    EXPECT_EQ(pod.awaited(), std::set<std::string>{"main"}) << "its last attempt is the previous";
    pod.OnDeletion(seconds(30), kStart + seconds(1));
    EXPECT_TRUE(pod.finished());
    main = pod.Status()["containerStatuses"][0];
    EXPECT_EQ(main["state"]["terminated"]["exitCode"], code) << main;
    EXPECT_EQ(main["state"]["terminated"]["containerID"], "tahoma://1");
    EXPECT_EQ(main["restartCount"], 1);
    EXPECT_EQ(pod.phase(), code == 0 ? "Succeeded" : "Failed");
    EXPECT_EQ(pod.NextDeadline(), std::nullopt);
    EXPECT_TRUE(pod.awaited().empty());
  }
}

// The defect: events of one container went to the other, and the pod hung with a running program.
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
    object["status"] = ParseJson(status);
    PodMachine pod = Make(object);
    pod.Start(kStart);
    EXPECT_GE(pod.Status()["containerStatuses"][0]["restartCount"], 0);
    pod.OnDeletion(seconds(0), kStart);
    pod.OnStarted("main", pod.restarts("main"), "id", kStart);
    pod.OnExited("main", pod.restarts("main"), {.code = 137}, kStart);
    EXPECT_TRUE(pod.finished());
  }
}

TEST(PodLifeTest, APodThatWasDeletedBeforeItWasSeenIsRemovedWithoutRunning) {
  json object = PodJson();
  object["spec"]["resourceClaims"] = {{{"name", "chips"}, {"resourceClaimName", "chips-1"}}};
  object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  PodMachine pod = Make(object);
  const PodActions actions = pod.Start(kStart);
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<RemovePod>(actions[0]));
  EXPECT_TRUE(pod.finished());
}

// A life of a pod with an init container and two other containers, seen through its statuses. The
// world starts and ends containers at random; the runner may be killed and begin anew.
class Life {
 public:
  explicit Life(json object) : object_(std::move(object)) { Begin(); }

  void Begin() {
    pod_.emplace(Make(object_));
    starting_.clear();
    running_.clear();
    Carry(pod_->Start(now_));
  }
  void Step(int event, bool good) {
    if (event == 0 && !starting_.empty()) {
      const auto [name, attempt] = *starting_.begin();
      starting_.erase(starting_.begin());
      if (good) running_[name] = attempt;
      Carry(good ? pod_->OnStarted(name, attempt, "id", now_)
                 : pod_->OnStartFailed(name, attempt, {"CreateContainerError", "no"}, now_));
    } else if (event == 1 && !running_.empty()) {
      const auto [name, attempt] = *running_.begin();
      running_.erase(running_.begin());
      ends_[name] += 1;
      Carry(pod_->OnExited(name, attempt, {.code = good ? 0 : 1}, now_));
    } else if (event == 2) {
      now_ = std::max(now_ + seconds(1), pod_->NextDeadline().value_or(now_));
      Carry(pod_->OnTick(now_));
    } else if (event == 3 && good) {
      for (const auto& [name, attempt] : running_) ends_[name] += 1;
      Begin();
    }
  }
  void Delete() {
    object_["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    Carry(pod_->OnDeletion(seconds(1), now_));
  }
  bool finished() const { return pod_->finished(); }

 private:
  void Carry(const PodActions& actions) {
    for (const PodAction& action : actions) {
      if (const auto* start = std::get_if<StartContainer>(&action)) {
        RC_ASSERT(!ended_for_good_);
        starting_[start->container] = start->attempt;
      }
    }
    Look(pod_->Status());
  }
  // Checks the status against all earlier statuses.
  void Look(const json& status) {
    const std::string phase = status["phase"];
    if (ended_for_good_) RC_ASSERT(phase == last_phase_);
    ended_for_good_ = phase == "Succeeded" || phase == "Failed";
    last_phase_ = phase;
    for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
      for (const json& container : status[list]) {
        const std::string name = container["name"];
        const int restarts = container["restartCount"];
        RC_ASSERT(restarts >= restarts_[name]);
        RC_ASSERT(restarts <= ends_[name]);
        restarts_[name] = restarts;
        RC_ASSERT(container["state"].size() == 1U);
        if (ended_for_good_) RC_ASSERT(!container["state"].contains("running"));
        if (phase == "Succeeded") RC_ASSERT(container["state"]["terminated"]["exitCode"] == 0);
        if (container["state"].contains("running")) RC_ASSERT(running_.contains(name));
      }
    }
    for (const json& condition : status["conditions"]) {
      const auto [at, added] = conditions_.try_emplace(condition["type"], condition);
      const bool same = !added && at->second["status"] == condition["status"];
      if (same) {
        RC_ASSERT(at->second["lastTransitionTime"] == condition["lastTransitionTime"]);
      } else {
        RC_ASSERT(condition["lastTransitionTime"] == FormatTime(now_));
      }
      at->second = condition;
    }
    object_["status"] = status;
  }

  json object_;
  WallTime now_ = kStart;
  std::optional<PodMachine> pod_;
  std::map<std::string, int> starting_;  // attempts
  std::map<std::string, int> running_;
  std::map<std::string, int> ends_;
  std::map<std::string, int> restarts_;
  std::map<std::string, json> conditions_;
  std::string last_phase_;
  bool ended_for_good_ = false;
};

RC_GTEST_PROP(PodLifeProperty, NoStatusContradictsAFormerOne, ()) {
  json object = PodJson(*rc::gen::element("Always", "OnFailure", "Never"));
  object["spec"]["containers"].push_back({{"name", "side"}});
  object["spec"]["initContainers"] = {{{"name", "before"}}};
  if (*rc::gen::arbitrary<bool>()) object["spec"]["activeDeadlineSeconds"] = 300;
  Life life(object);
  const int steps = *rc::gen::inRange(0, 80);
  for (int i = 0; i < steps; ++i) life.Step(*rc::gen::inRange(0, 4), *rc::gen::inRange(0, 3) != 0);
  life.Delete();
  for (int i = 0; i < 40 && !life.finished(); ++i) life.Step(i % 3, true);
  RC_ASSERT(life.finished());
}

}  // namespace
}  // namespace tahoma::sim

// Tests what people are shown of a gang in each of its states.

#include "controller/core/status_reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_api.h"
#include "tests/unit/controller/core/decisions.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const GangRef kTrain{{"default", "train"}, false};

class StatusReporterTest : public ::testing::Test {
 protected:
  StatusReporterTest() {
    api_.AddNode("node-0");
    api_.AddNode("node-1");
    api_.AddGang("train", 2);
    api_.AddPodWithClaim("train-0", "train", 1);
    api_.AddPodWithClaim("train-1", "train", 1);
    Hear();
  }
  void Hear() {
    for (const Command& command : api_.TakeEvents()) {
      if (const auto* pod = std::get_if<PodSeen>(&command)) {
        facts_.pods.Put(pod->pod);
        membership_.OnPod(*pod->pod);
      }
      if (const auto* claim = std::get_if<ClaimSeen>(&command)) facts_.claims.Put(claim->claim);
      if (const auto* gang = std::get_if<GangSeen>(&command)) facts_.gangs.Put(gang->gang);
      if (const auto* node = std::get_if<NodeSeen>(&command)) cluster_.PutNode(node->node);
    }
  }
  // "Pending WaitingForPods: message; PodsReady=False (WaitingForPods) …", of view and status.
  std::string Show() {
    reporter_.Show(kTrain, now_);
    now_.wall += std::chrono::minutes(1);
    now_.monotonic += std::chrono::minutes(1);
    Flush();
    const GangView& view = **reporter_.views().Find(kTrain);
    EXPECT_EQ(view.phase, status_->phase);
    EXPECT_EQ(view.reason, status_->reason);
    std::string text =
        fmt::format("{} {}: {}", ToString(view.phase), ToString(view.reason), view.message);
    for (const GangCondition& condition : status_->conditions) {
      text += fmt::format("; {}={} {}", ToString(condition.type), ToString(condition.status),
                          ToString(condition.reason));
    }
    return text;
  }
  void Flush() {
    reporter_.Flush(now_);
    for (const ApiWrite& write : writes_.DrainWrites()) {
      if (const auto* gang = std::get_if<GangStatusWrite>(&write.what)) status_ = gang->status;
      if (const auto* event = std::get_if<EventNote>(&write.what)) {
        events_.push_back(fmt::format("{} {} {}: {}",
                                      event->about == EventSubject::kGang ? "gang" : "pod",
                                      event->name, event->reason, event->message));
      }
      reporter_.OnResult(ResultOf(write), now_);
    }
  }
  // The run's records, as if all were carried out.
  void Begin() {
    decision_ = DecisionFor(api_, "train");
    runs_.Begin(decision_);
    queue_.Remove(kTrain);
  }
  void Advance(int times) {
    for (int i = 0; i < times; ++i) {
      runs_.Advance(now_.monotonic);
      for (const ApiWrite& write : writes_.DrainWrites()) {
        runs_.OnResult(api_.Execute(write), now_.monotonic);
      }
      Hear();
    }
  }

  FakeApi api_;
  Facts facts_;
  GangMembership membership_;
  ClusterState cluster_;
  JournalBuffer buffer_;
  WriteBuffer writes_;
  GangRuns runs_{facts_, cluster_, buffer_, writes_, {}};
  SchedulingQueue queue_{
      [](const ClusterState& view, const Queue& queue, WallTime now, Explaining explaining) {
        return FirstFit(view, queue, now, explaining);
      }};
  StatusReporter reporter_{{.facts = facts_,
                            .membership = membership_,
                            .cluster = cluster_,
                            .runs = runs_,
                            .queue = queue_},
                           writes_};
  std::shared_ptr<GangDecision> decision_;
  std::shared_ptr<const GangStatus> status_;
  std::vector<std::string> events_;
  Now now_{WallTime(std::chrono::hours(24)), MonotonicTime(std::chrono::hours(1))};
};

TEST_F(StatusReporterTest, AGangThatIsNotReadySaysWhatIsMissing) {
  Readiness waits;
  waits.reason = GangReason::kWaitingForPods;
  waits.message = "1 of 2 pods exist";
  queue_.Put(kTrain, waits);
  EXPECT_EQ(Show(),
            "Pending WaitingForPods: 1 of 2 pods exist; PodsReady=False WaitingForPods; "
            "Placed=False PodsNotReady; Bound=False NotPlaced; Ready=False NotPlaced");
  EXPECT_THAT(events_, ElementsAre("pod train-0 FailedScheduling: 1 of 2 pods exist",
                                   "pod train-1 FailedScheduling: 1 of 2 pods exist"));
}

TEST_F(StatusReporterTest, AGangWithoutAPlaceSaysWhy) {
  Readiness ready;
  auto spec = std::make_shared<GangSpec>();
  spec->key = kTrain.key;
  spec->members.resize(1);
  ready.spec = spec;
  queue_.Put(kTrain, ready);
  EXPECT_EQ(Show(),
            "Pending : ; PodsReady=True AllPodsExist; Placed=False ; Bound=False NotPlaced; "
            "Ready=False NotPlaced");
  for (const Planned& planned : queue_.Plan(ClusterState(), 1, now_.wall)) {
    EXPECT_TRUE(planned.news);
    reporter_.TellBlocked(kTrain, queue_.Find(kTrain)->message, now_.wall);
  }
  EXPECT_EQ(Show(),
            "Pending WaitsForCapacity: no node has room; PodsReady=True AllPodsExist; "
            "Placed=False WaitsForCapacity; Bound=False NotPlaced; Ready=False NotPlaced");
  EXPECT_THAT(events_, ElementsAre("gang train GangBlocked: no node has room",
                                   "pod train-0 FailedScheduling: no node has room",
                                   "pod train-1 FailedScheduling: no node has room"));
}

TEST_F(StatusReporterTest, AGangIsPlacedThenRunsThenHasFinished) {
  Begin();
  reporter_.TellPlaced(*decision_, now_.wall);
  EXPECT_EQ(Show(),
            "Placed Committing: node-0, node-1; PodsReady=True AllPodsExist; Placed=True Placed; "
            "Bound=False Committing; Ready=False Committing");
  EXPECT_EQ(status_->placement, "node-0, node-1");
  EXPECT_EQ(status_->bound_members, 0);
  EXPECT_EQ(status_->start_time, std::nullopt);
  Advance(5);
  for (const RunNews& news : runs_.DrainNews()) reporter_.TellRun(news, now_.wall);
  EXPECT_EQ(Show(),
            "Running Bound: node-0, node-1; PodsReady=True AllPodsExist; Placed=True Placed; "
            "Bound=True AllPodsBound; Ready=True AllMembersReady");
  EXPECT_EQ(status_->bound_members, 2);
  EXPECT_THAT(
      events_,
      ElementsAre("gang train GangPlaced: Placed on node-0, node-1",
                  "pod train-0 Scheduled: Successfully assigned default/train-0 to node-0",
                  "pod train-1 Scheduled: Successfully assigned default/train-1 to node-1"));
  api_.FinishPod("train-0", true);
  Hear();
  EXPECT_EQ(Show().substr(0, 13), "Running Bound") << "one of two has ended well";
  api_.FinishPod("train-1", true);
  Hear();
  const WallTime ended = now_.wall;
  EXPECT_EQ(Show().substr(0, 18), "Finished PodsEnded");
  EXPECT_EQ(status_->completion_time, ended);
  Show();
  EXPECT_EQ(status_->completion_time, ended) << "the first time counts";
  EXPECT_EQ(status_->placement, "node-0, node-1");
}

TEST_F(StatusReporterTest, AGangThatHasEndedBeforeARestartKeepsWhereAndWhenItRan) {
  const WallTime start = now_.wall - std::chrono::hours(2);
  const WallTime end = now_.wall - std::chrono::hours(1);
  auto gang = std::make_shared<GangFact>(*facts_.gangs.Find(kTrain.key));
  gang->past = std::make_shared<const GangPast>(
      GangPast{.placement = "node-7", .start_time = start, .completion_time = end});
  facts_.gangs.Put(gang);
  Readiness ended;
  ended.finished = ended.succeeded = true;
  queue_.Put(kTrain, ended);
  Show();
  EXPECT_EQ(status_->placement, "node-7");
  EXPECT_EQ(status_->start_time, start);
  EXPECT_EQ(status_->completion_time, end);
  // A gang that is to run again has no past any more.
  Readiness waits;
  waits.reason = GangReason::kWaitingForPods;
  queue_.Put(kTrain, waits);
  Show();
  EXPECT_EQ(status_->placement, "");
  EXPECT_EQ(status_->start_time, std::nullopt);
  EXPECT_EQ(status_->completion_time, std::nullopt);
}

TEST_F(StatusReporterTest, AGangOfWhichAPodFailedDoesNotRun) {
  Begin();
  Advance(5);
  api_.FinishPod("train-0", false);
  Hear();
  runs_.OnPod({"default", "train-0"});
  EXPECT_EQ(Show(),
            "Degraded MemberLost: 1 of 2 members are ready: pod train-0 failed; "
            "PodsReady=False MemberLost; Placed=True Placed; Bound=False MemberLost; "
            "Ready=False MemberLost");
  EXPECT_EQ(status_->bound_members, 1);
  runs_.Advance(now_.monotonic);
  EXPECT_EQ(Show().substr(0, 18), "Pending MemberLost");
}

TEST_F(StatusReporterTest, AGangThatIsTakenBackIsPendingAndSaysWhy) {
  Begin();
  runs_.Advance(now_.monotonic);
  writes_.DrainWrites();  // under way until the end
  runs_.OnNodeGone("node-0");
  runs_.Advance(now_.monotonic);
  for (const RunNews& news : runs_.DrainNews()) reporter_.TellRun(news, now_.wall);
  EXPECT_EQ(Show(),
            "Pending Undone: node node-0 is gone; PodsReady=True AllPodsExist; "
            "Placed=False Undone; Bound=False Undone; Ready=False Undone");
  EXPECT_EQ(status_->placement, "");
  EXPECT_THAT(events_, ElementsAre("gang train GangUndone: node node-0 is gone"));
}

TEST_F(StatusReporterTest, AGangWhoseRunIsOverKeepsWhatWasTrueOfItsPods) {
  Readiness ended;
  ended.finished = ended.succeeded = true;
  queue_.Put(kTrain, ended);
  for (const char* pod : {"train-0", "train-1"}) api_.FinishPod(pod, true);
  Hear();
  EXPECT_EQ(Show(),
            "Finished PodsEnded: all pods have ended; PodsReady=True PodsEnded; "
            "Placed=False PodsEnded; Bound=False PodsEnded; Ready=False PodsEnded")
      << "they were never bound";
  EXPECT_THAT(events_, IsEmpty());
}

TEST_F(StatusReporterTest, APodThatHasNoPlaceInItsGangsRunIsToldSo) {
  Begin();
  Advance(5);
  api_.AddPod("train-2", "train", {});
  Hear();
  Show();
  EXPECT_THAT(events_, ElementsAre("pod train-2 FailedScheduling: gang default/train runs with "
                                   "other pods; it is placed again when they have ended"));
}

TEST_F(StatusReporterTest, WhatIsForgottenHasNoViewAndIsNotWrittenTo) {
  Readiness waits;
  waits.reason = GangReason::kWaitingForPods;
  waits.message = "m";
  queue_.Put(kTrain, waits);
  reporter_.Show(kTrain, now_);
  EXPECT_NE(reporter_.wake(now_), std::nullopt);
  queue_.Remove(kTrain);
  reporter_.Forget(kTrain);
  reporter_.ForgetGang(kTrain.key);
  for (const char* pod : {"train-0", "train-1"}) reporter_.ForgetPod({"default", pod});
  EXPECT_EQ(reporter_.views().Find(kTrain), nullptr);
  EXPECT_EQ(reporter_.wake(now_), std::nullopt);
}

TEST_F(StatusReporterTest, AGangThatNeitherRunsNorWaitsCannotBeShown) {
  EXPECT_DEATH(reporter_.Show(kTrain, now_), "CHECK failed: run != nullptr");
}

}  // namespace
}  // namespace tahoma::controller

// A running gang loses a member: the end or the going on of the other members, the hardware and the
// next pods, whenever the program dies.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/core/core.h"
#include "controller/plan/planner.h"
#include "tests/support/fleet.h"
#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

GangStatus Status(const World& world) { return world.api.statuses().at("train"); }

GangCondition ConditionOf(const GangStatus& status, ConditionType type) {
  return *std::ranges::find(status.conditions, type, &GangCondition::type);
}

std::string Message(const World& world) {
  return ConditionOf(Status(world), ConditionType::kPodsReady).message;
}

// A gang runs, and loses the second member.
void RunAndLose(World& world) {
  AddGangOfTwo(world.api);
  world.Settle();
  world.api.ChangePod("train-1", [](PodFact& pod) { pod.trouble = "container main: exit code 3"; });
  world.api.FinishPod("train-1", false);
  world.Settle();
}

void AddNextPods(World& world) {
  world.api.AddPodWithClaim("train-2", "train", 10);
  world.api.AddPodWithClaim("train-3", "train", 10);
}

TEST(CoreMembersTest, WhenAMemberFailsTheOthersAreEnded) {
  World world;
  RunAndLose(world);
  EXPECT_FALSE(world.api.pods().contains("train-0"));
  EXPECT_EQ(EventsOf(world.api, EventReason::kGangMemberLost), 1);
  EXPECT_EQ(
      Message(world),
      "0 of 2 pods exist; its last run ended: pod train-1 failed: container main: exit code 3 "
      "(rank 1 on node node-b)");
  EXPECT_EQ(Status(world).phase, GangPhase::kPending);
  EXPECT_EQ(world.journal.size(), 0U);
  EXPECT_THAT(world.api.faults, IsEmpty());
}

TEST(CoreMembersTest, TheHardwareIsKeptForTheNextPods) {
  World world;
  RunAndLose(world);
  // Both are created before the next pods, and would fit on node-b.
  world.api.AddPodWithClaim("other", "", 16);
  world.Settle();
  EXPECT_EQ(world.api.pods().at("other").node, "");
  AddNextPods(world);
  world.Settle();
  EXPECT_EQ(world.api.pods().at("train-2").node, "node-a");
  EXPECT_EQ(world.api.pods().at("train-3").node, "node-b");
  EXPECT_EQ(Status(world).phase, GangPhase::kRunning);
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 2U);
  world.api.CheckAtRest();
  EXPECT_THAT(world.api.faults, IsEmpty());
}

TEST(CoreMembersTest, TheHardwareIsFreeAgainAfterFiveMinutes) {
  World world;
  RunAndLose(world);
  world.api.AddPodWithClaim("other", "", 16);
  world.Settle();
  const WallTime lost = world.Time().wall;
  world.MoveTo(lost + minutes(4));
  EXPECT_EQ(world.api.pods().at("other").node, "");
  world.MoveTo(lost + minutes(6));
  EXPECT_NE(world.api.pods().at("other").node, "");
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 1U);
}

TEST(CoreMembersTest, NothingIsKeptForAGangThatIsDeleted) {
  World world;
  RunAndLose(world);
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 2U);
  world.api.RemoveGang("train");
  world.Settle();
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 0U);
}

TEST(CoreMembersTest, NothingIsKeptWhenAllPodsHaveEndedAndNobodyMakesThemAnew) {
  for (const bool controlled : {false, true}) {
    World world;
    AddGangOfTwo(world.api);
    for (const char* pod : {"train-0", "train-1"}) {
      world.api.ChangePod(pod, [&](PodFact& fact) { fact.controlled = controlled; });
    }
    world.Settle();
    for (const char* pod : {"train-0", "train-1"}) world.api.FinishPod(pod, false);
    world.Settle();
    EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), controlled ? 2U : 0U);
    EXPECT_EQ(Status(world).phase, GangPhase::kFailed);
    EXPECT_EQ(Status(world).reason, GangReason::kPodsEnded);
  }
}

TEST(CoreMembersTest, NothingIsKeptWhenPodsThatNobodyMakesAnewAreAllDeleted) {
  for (const bool controlled : {false, true}) {
    SCOPED_TRACE(controlled);
    World world;
    AddGangOfTwo(world.api);
    world.api.ChangePod("train-0", [&](PodFact& fact) { fact.controlled = controlled; });
    world.Settle();
    world.api.DeletePod("train-0");
    world.Settle();
    EXPECT_THAT(world.api.pods(), IsEmpty());
    EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), controlled ? 2U : 0U);
  }
}

TEST(CoreMembersTest, WhatWasKeptForAFailedPodsGangIsFreeWhenThatPodIsDeletedToo) {
  World world;
  RunAndLose(world);
  world.api.AddPodWithClaim("other", "", 16);
  world.Settle();
  EXPECT_EQ(world.api.pods().at("other").node, "");
  world.api.DeletePod("train-1");
  world.Settle();
  EXPECT_NE(world.api.pods().at("other").node, "");
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 1U);
}

// The defect: the pod was counted as gone, and lost the claim while running.
TEST(CoreMembersTest, AConflictIsNotTakenForTheEndOfAPod) {
  for (int at = 1; at <= 10; ++at) {
    SCOPED_TRACE(at);
    World world;
    AddGangOfTwo(world.api);
    world.Settle();
    const int before = world.writes;
    world.fate = [&](int n) { return n == before + at ? Fate::kConflict : Fate::kNormal; };
    world.api.FinishPod("train-1", false);
    world.Settle();
    EXPECT_FALSE(world.api.pods().contains("train-0"));
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
  }
}

TEST(CoreMembersTest, AGangThatMayBeEndedForOthersKeepsNothing) {
  World world;
  AddGangOfTwo(world.api);
  world.api.ChangeGang("train", [](GangFact& gang) { gang.preemptible = true; });
  world.Settle();
  world.api.DeletePod("train-1");
  world.Settle();
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 0U);
}

TEST(CoreMembersTest, ADeletedMemberIsLostToo) {
  World world;
  AddGangOfTwo(world.api);
  world.Settle();
  world.api.DeletePod("train-0");
  world.Settle();
  EXPECT_FALSE(world.api.pods().contains("train-1"));
  EXPECT_THAT(Message(world), HasSubstr("pod train-0 is being deleted (rank 0 on node node-a)"));
}

TEST(CoreMembersTest, AMemberThatSucceedsIsNotLostEvenWhenItIsDeletedLater) {
  for (const bool restarted : {false, true}) {
    World world;
    AddGangOfTwo(world.api);
    world.Settle();
    world.api.FinishPod("train-0", true);
    world.Settle();
    world.api.DeletePod("train-0");
    if (restarted) world.Start();
    world.Settle();
    EXPECT_TRUE(world.api.pods().contains("train-1"));
    EXPECT_EQ(Status(world).phase, GangPhase::kRunning);
    EXPECT_EQ(EventsOf(world.api, EventReason::kGangMemberLost), 0);
  }
}

TEST(CoreMembersTest, WithThePolicyFailTheGangEndsForGood) {
  World world;
  AddGangOfTwo(world.api);
  world.api.ChangeGang("train", [](GangFact& gang) { gang.failure_policy = FailurePolicy::kFail; });
  world.Settle();
  world.api.FinishPod("train-1", false);
  world.Settle();
  AddNextPods(world);
  for (const bool restarted : {false, true}) {
    if (restarted) world.Start();
    world.Settle();
    EXPECT_EQ(world.api.pods().at("train-2").node, "") << restarted;
    EXPECT_EQ(Status(world).phase, GangPhase::kFailed);
    EXPECT_EQ(Status(world).reason, GangReason::kMemberLost);
    const GangCondition failed = ConditionOf(Status(world), ConditionType::kFailed);
    EXPECT_EQ(failed.status, ConditionStatus::kTrue);
    EXPECT_THAT(failed.message, HasSubstr("pod train-1 failed"));
  }
  EXPECT_EQ(world.journal.size(), 0U);
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 0U);
  EXPECT_THAT(world.api.faults, IsEmpty());
}

// A job that ends at once: the news of its pods and of its claims come together.
TEST(CoreMembersTest, WithThePolicyFailAGangWhoseClaimsAreGoneAtOnceHasFailed) {
  World world;
  AddGangOfTwo(world.api);
  world.api.ChangeGang("train", [](GangFact& gang) { gang.failure_policy = FailurePolicy::kFail; });
  world.Settle();
  for (const char* pod : {"train-0", "train-1"}) world.api.FinishPod(pod, false);
  std::vector<std::string> claims;
  for (const auto& [name, claim] : world.api.claims()) claims.push_back(name);
  for (const std::string& claim : claims) world.api.RemoveClaim(claim);
  world.Settle();
  EXPECT_EQ(Status(world).phase, GangPhase::kFailed);
  EXPECT_EQ(Status(world).reason, GangReason::kMemberLost);
  EXPECT_EQ(ConditionOf(Status(world), ConditionType::kFailed).status, ConditionStatus::kTrue);
  EXPECT_EQ(world.journal.size(), 0U);
}

// The records of the run are dropped only when the Gang itself has the condition Failed.
TEST(CoreMembersTest, AGangThatFailsForGoodDoesSoWheneverTheProgramDies) {
  for (int at = 1; at < 60; ++at) {
    SCOPED_TRACE(at);
    World world;
    AddGangOfTwo(world.api);
    world.api.ChangeGang("train",
                         [](GangFact& gang) { gang.failure_policy = FailurePolicy::kFail; });
    world.Settle();
    world.api.FinishPod("train-1", false);
    world.crash_after = world.DoneSteps() + at;
    const bool whole = world.Settle();
    world.crash_after = 0;
    AddNextPods(world);
    world.Start();
    world.Settle();
    EXPECT_EQ(Status(world).phase, GangPhase::kFailed);
    EXPECT_EQ(world.api.pods().at("train-2").node, "");
    EXPECT_EQ(world.journal.size(), 0U);
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
    if (whole) break;
  }
}

TEST(CoreMembersTest, ALostMemberIsDealtWithWheneverTheProgramDies) {
  for (int at = 1; at < 60; ++at) {
    SCOPED_TRACE(at);
    World world;
    AddGangOfTwo(world.api);
    world.Settle();
    world.api.FinishPod("train-1", false);
    world.crash_after = world.DoneSteps() + at;
    const bool whole = world.Settle();
    world.crash_after = 0;
    world.Start();
    world.Settle();
    AddNextPods(world);
    world.Settle();
    EXPECT_EQ(BoundPods(world.api), 3) << "one of them has ended";
    EXPECT_EQ(Status(world).phase, GangPhase::kRunning);
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
    if (whole) break;
  }
}

TEST(CoreMembersTest, AGangOfWhichAPodDoesNotStartIsEndedAndTriedAgainAfterAPause) {
  World world;
  world.api.starts_pods = false;
  AddGangOfTwo(world.api);
  world.Settle();
  EXPECT_EQ(Status(world).phase, GangPhase::kPlaced);
  EXPECT_EQ(Status(world).reason, GangReason::kStarting);
  world.api.ChangePod("train-0", [](PodFact& pod) { pod.ready = true; });
  world.api.ChangePod("train-1", [](PodFact& pod) { pod.trouble = "container main: no image"; });
  world.Settle();
  EXPECT_EQ(ConditionOf(Status(world), ConditionType::kReady).message,
            "1 of 2 members are ready: pod train-1 is not ready: container main: no image");
  const WallTime bound = world.api.pods().at("train-1").scheduled_at.value();
  world.MoveTo(bound + minutes(9));
  EXPECT_EQ(BoundPods(world.api), 2);
  world.MoveTo(bound + minutes(10) + seconds(1));
  EXPECT_EQ(BoundPods(world.api), 0);
  EXPECT_EQ(EventsOf(world.api, EventReason::kGangNotStarted), 1);
  const std::string why =
      "pod train-1 (rank 1 on node node-b) was not ready within 600 s: container main: no image";
  EXPECT_EQ(Message(world), "0 of 2 pods exist; its last run ended: " + why);
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 0U) << "nothing is kept";
  AddNextPods(world);
  world.Settle();
  EXPECT_EQ(BoundPods(world.api), 2);
}

TEST(CoreMembersTest, StartWithinHoldsThroughRestarts) {
  World world;
  world.api.starts_pods = false;
  AddGangOfTwo(world.api);
  world.api.ChangeGang("train", [](GangFact& gang) { gang.start_within = minutes(2); });
  world.Settle();
  const WallTime bound = world.api.pods().at("train-1").scheduled_at.value();
  world.Start();
  world.Settle();
  EXPECT_EQ(BoundPods(world.api), 2);
  world.MoveTo(bound + minutes(2) + seconds(1));
  EXPECT_EQ(BoundPods(world.api), 0);
}

TEST(CoreMembersTest, AGangThatHasStartedIsNotEndedForAPodThatIsUnreadyLater) {
  World world;
  AddGangOfTwo(world.api);
  world.Settle();
  world.api.ChangePod("train-1", [](PodFact& pod) {
    pod.ready = false;
    pod.running = true;
  });
  for (const bool restarted : {false, true}) {
    if (restarted) world.Start();
    world.Settle();
    world.MoveTo(world.Time().wall + minutes(30));
    EXPECT_EQ(BoundPods(world.api), 2);
    EXPECT_EQ(Status(world).phase, GangPhase::kDegraded);
    EXPECT_EQ(Status(world).reason, GangReason::kMembersNotReady);
  }
}

TEST(CoreMembersTest, AGangOnANodeThatIsNotReadyDoesNotRun) {
  World world;
  AddGangOfTwo(world.api);
  world.Settle();
  EXPECT_EQ(Status(world).ready_members, 2);
  world.api.ChangeNode("node-b", [](NodeFacts& node) { node.ready = false; });
  world.Settle();
  EXPECT_EQ(Status(world).phase, GangPhase::kDegraded);
  EXPECT_EQ(Status(world).reason, GangReason::kNodeNotReady);
  EXPECT_EQ(Status(world).ready_members, 1);
  ASSERT_EQ(Status(world).troubled_members.size(), 1U);
  EXPECT_EQ(Status(world).troubled_members[0].node, "node-b");
  EXPECT_EQ(Status(world).troubled_members[0].message, "node node-b of pod train-1 is not ready");
  world.api.ChangeNode("node-b", [](NodeFacts& node) { node.ready = true; });
  world.Settle();
  EXPECT_EQ(Status(world).phase, GangPhase::kRunning);
  EXPECT_EQ(ConditionOf(Status(world), ConditionType::kReady).status, ConditionStatus::kTrue);
}

TEST(CoreMembersTest, TheGangThatLostAMemberGoesBeforeOlderOnesOfItsPriority) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddPodWithClaim("fills", "", 16);
  world.api.AddGang("older", 1);
  world.api.AddGang("train", 1);
  world.Settle();
  world.api.FinishPod("fills", true);
  world.Settle();
  world.api.AddPodWithClaim("train-0", "train", 16);
  world.Settle();
  ASSERT_EQ(world.api.pods().at("train-0").node, "node-a");
  world.api.AddPodWithClaim("older-0", "older", 16);
  world.api.ChangePod("train-0", [](PodFact& pod) { pod.controlled = true; });
  world.api.FinishPod("train-0", false);
  world.Settle();
  world.api.AddPodWithClaim("train-1", "train", 16);
  world.Settle();
  EXPECT_EQ(world.api.pods().at("train-1").node, "node-a");
  EXPECT_EQ(world.api.pods().at("older-0").node, "");
}

TEST(CoreMembersTest, AMemberLostWhileTheJournalWasLostEndsTheGangToo) {
  World world;
  AddGangOfTwo(world.api);
  world.Settle();
  world.api.FinishPod("train-1", false);
  world.api.RunControllers();
  world.journal = MemoryJournal();
  world.Start();
  world.Settle();
  EXPECT_FALSE(world.api.pods().contains("train-0"));
  EXPECT_THAT(world.api.faults, IsEmpty());
}

// A gang of two goes on without the second member, on nodes with a real planner.
class ReplaceTest : public ::testing::Test {
 protected:
  ReplaceTest()
      : world_({},
               [planner = std::make_shared<Planner>()](const ClusterState& view, const Queue& queue,
                                                       WallTime now, Explaining explaining) {
                 return planner->Plan(view, queue, now, explaining);
               }) {
    world_.api.AddClass();
    AddGangOfTwo(world_.api);
    world_.api.ChangeGang("train",
                          [](GangFact& gang) { gang.failure_policy = FailurePolicy::kReplace; });
    world_.Settle();
    lost_ = world_.api.pods().at("train-1");
    chips_ = Devices("train-1-chips");
  }

  std::string Devices(const std::string& claim) const {
    std::string text;
    for (const DeviceResult& result : world_.api.claims().at(claim).allocation->results) {
      text += result.pool + "/" + result.device + " ";
    }
    return text;
  }
  void Lose() { world_.api.FinishPod("train-1", false); }
  void ExpectReplaced() {
    EXPECT_EQ(world_.api.pods().at("train-9").node, lost_.node);
    EXPECT_EQ(world_.api.pods().at("train-9").bound_rank, lost_.bound_rank);
    EXPECT_EQ(Devices("train-9-chips"), chips_);
    EXPECT_TRUE(world_.api.pods().contains("train-0")) << "the other goes on";
    EXPECT_EQ(Status(world_).phase, GangPhase::kRunning);
    EXPECT_EQ(world_.core().snapshot()->cluster->holding_count(), 2U);
    world_.api.CheckAtRest();
    EXPECT_THAT(world_.api.faults, IsEmpty());
  }

  World world_;
  PodFact lost_;
  std::string chips_;
};

TEST_F(ReplaceTest, TheNextPodHasTheRankAndTheChipsOfTheLostOne) {
  Lose();
  world_.Settle();
  EXPECT_EQ(Status(world_).phase, GangPhase::kDegraded);
  EXPECT_EQ(Status(world_).reason, GangReason::kMemberLost);
  EXPECT_EQ(Status(world_).bound_members, 1);
  world_.api.AddPodWithClaim("train-9", "train", 10);
  world_.Settle();
  ExpectReplaced();
  EXPECT_EQ(EventsOf(world_.api, EventReason::kMemberReplaced), 1);
  EXPECT_EQ(EventsOf(world_.api, EventReason::kGangMemberLost), 0);
  world_.Start();
  world_.Settle();
  ExpectReplaced();
  world_.api.FinishPod("train-0", true);
  world_.api.FinishPod("train-9", true);
  world_.Settle();
  EXPECT_EQ(world_.journal.size(), 0U);
  EXPECT_EQ(world_.core().snapshot()->cluster->holding_count(), 0U);
}

TEST_F(ReplaceTest, APodOfTheSameNameMayTakeThePlace) {
  world_.api.DeletePod("train-1");
  world_.Settle();
  world_.api.RemoveClaim("train-1-chips");
  world_.api.AddPodWithClaim("train-1", "train", 10);
  world_.Settle();
  EXPECT_EQ(world_.api.pods().at("train-1").node, lost_.node);
  EXPECT_EQ(Devices("train-1-chips"), chips_);
  EXPECT_THAT(world_.api.faults, IsEmpty());
}

TEST_F(ReplaceTest, ThePlaceIsNobodyElsesUntilThen) {
  Lose();
  world_.Settle();
  world_.api.AddPodWithClaim("other", "", 16);
  world_.api.AddPodWithClaim("another", "", 7);
  world_.Settle();
  EXPECT_EQ(world_.api.pods().at("other").node, "");
  EXPECT_EQ(world_.api.pods().at("another").node, "");
}

TEST_F(ReplaceTest, ItIsReplacedAgainWhenItIsLostAgain) {
  Lose();
  world_.api.AddPodWithClaim("train-5", "train", 10);
  world_.Settle();
  EXPECT_EQ(world_.api.pods().at("train-5").node, lost_.node);
  world_.api.DeletePod("train-5");
  world_.Settle();
  world_.api.AddPodWithClaim("train-9", "train", 10);
  world_.Settle();
  ExpectReplaced();
}

TEST_F(ReplaceTest, WhereNoPodComesTheGangBeginsAgain) {
  Lose();
  world_.Settle();
  world_.MoveTo(world_.Time().wall + minutes(11));
  EXPECT_FALSE(world_.api.pods().contains("train-0"));
  EXPECT_THAT(Message(world_), HasSubstr("no pod has taken its place within 600 s"));
}

TEST_F(ReplaceTest, WhereTheChipsDoNotTakeThePodTheGangBeginsAgain) {
  Lose();
  world_.Settle();
  world_.api.ChangeNode(lost_.node, [](NodeFacts& node) { node.schedulable = false; });
  world_.api.AddPodWithClaim("train-9", "train", 10);
  world_.Settle();
  EXPECT_FALSE(world_.api.pods().contains("train-0"));
  EXPECT_THAT(Message(world_), HasSubstr("do not take pod train-9"));
}

TEST_F(ReplaceTest, APodThatAsksForLessDoesNotTakeThePlace) {
  Lose();
  world_.api.AddPodWithClaim("train-9", "train", 9);
  world_.Settle();
  EXPECT_FALSE(world_.api.pods().contains("train-0"));
  EXPECT_THAT(Message(world_), HasSubstr("pod train-9 asks for other devices"));
}

TEST_F(ReplaceTest, WhenAllAreLostTheGangBeginsAgain) {
  Lose();
  world_.api.DeletePod("train-0");
  world_.Settle();
  EXPECT_EQ(EventsOf(world_.api, EventReason::kGangMemberLost), 1);
  EXPECT_EQ(world_.journal.size(), 0U);
}

TEST_F(ReplaceTest, TheIndexSaysWhichRankAPodTakes) {
  const auto set_index = [&](const std::string& pod, const std::string& index) {
    world_.api.ChangePod(pod, [&](PodFact& fact) {
      fact.labels = {{"batch.kubernetes.io/job-completion-index", index}};
    });
  };
  set_index("train-0", "0");
  set_index("train-1", "1");
  Lose();
  world_.api.AddPodWithClaim("train-9", "train", 10);
  set_index("train-9", "0");  // another pod has that place
  world_.Settle();
  EXPECT_FALSE(world_.api.pods().contains("train-0"));
  EXPECT_THAT(Message(world_), HasSubstr("indexes"));
}

// Two pods of three are lost, and the node of the first is closed. The node of the second has chips
// for both next pods, and cpu for one.
TEST(ReplaceTogetherTest, APodThatMovesLeavesRoomForOneThatStays) {
  World world({},
              [planner = std::make_shared<Planner>()](const ClusterState& view, const Queue& queue,
                                                      WallTime now, Explaining explaining) {
                return planner->Plan(view, queue, now, explaining);
              });
  world.api.AddClass();
  for (const char* name : {"node-a", "node-b", "node-c", "node-d"}) {
    world.api.AddNode(name);
    world.api.ChangeNode(name, [](NodeFacts& node) {
      node.allocatable = kube::Amounts{{"cpu", 4000}, {"pods", 110}};
    });
  }
  world.api.AddGang("train", 3);
  world.api.ChangeGang("train",
                       [](GangFact& gang) { gang.failure_policy = FailurePolicy::kReplace; });
  const auto add = [&](const std::string& name) {
    world.api.AddPodWithClaim(name, "train", 4);
    world.api.ChangePod(name, [](PodFact& pod) {
      pod.needs = std::make_shared<const kube::PodNeeds>(
          kube::PodNeeds{.amounts = {{"cpu", 3000}, {"pods", 1}}, .ports = {}});
    });
  };
  for (const char* name : {"train-0", "train-1", "train-2"}) add(name);
  world.Settle();
  const std::string closed = world.api.pods().at("train-1").node;
  const std::string stays = world.api.pods().at("train-2").node;
  ASSERT_NE(closed, stays);
  world.api.FinishPod("train-1", false);
  world.api.FinishPod("train-2", false);
  world.Settle();
  world.api.ChangeNode(closed, [](NodeFacts& node) { node.schedulable = false; });
  add("train-8");
  add("train-9");
  world.Settle();
  std::set<std::string> nodes;
  for (const char* name : {"train-0", "train-8", "train-9"}) {
    nodes.insert(world.api.pods().at(name).node);
  }
  EXPECT_EQ(nodes.size(), 3U) << "no node has cpu for two";
  EXPECT_TRUE(nodes.contains(stays));
  EXPECT_FALSE(nodes.contains("")) << Message(world);
  EXPECT_THAT(world.api.faults, IsEmpty());
}

// A gang of two without a shape, of which the second loses its node, beside a free one.
// A gang with a shape that goes on without its lost pods.
class ReplaceShapeTest : public ::testing::Test {
 protected:
  void Place(const std::string& shape, int slices, int members, int chips) {
    world_.api.AddClass();
    world_.api.AddGang("train", members);
    world_.api.ChangeGang("train", [&](GangFact& gang) {
      gang.failure_policy = FailurePolicy::kReplace;
      gang.shape = shape;
      gang.slices = slices;
    });
    for (int i = 0; i < members; ++i) {
      world_.api.AddPodWithClaim(fmt::format("train-{}", i), "train", chips);
    }
    world_.Settle();
    ASSERT_EQ(Status(world_).phase, GangPhase::kRunning) << Message(world_);
  }
  void AddUltraServer(const std::string& id) {
    for (int z = 0; z < 4; ++z) {
      world_.api.AddNode(NodeFactsOf({.name = fmt::format("{}-n{}", id, z),
                                      .type = "trn2u.48xlarge",
                                      .ultra_server = id,
                                      .z = z}));
    }
  }
  void LoseWithNode(const std::string& pod) {
    world_.api.ChangeNode(NodeOf(pod), [](NodeFacts& node) { node.schedulable = false; });
    world_.api.FinishPod(pod, false);
    world_.Settle();
  }
  std::string NodeOf(const std::string& pod) const { return world_.api.pods().at(pod).node; }
  void ExpectWhole() {
    EXPECT_EQ(Status(world_).phase, GangPhase::kRunning) << Message(world_);
    world_.Start();
    world_.Settle();
    EXPECT_EQ(Status(world_).phase, GangPhase::kRunning);
    world_.api.CheckAtRest();
    EXPECT_THAT(world_.api.faults, IsEmpty());
  }

  World world_{{},
               [planner = std::make_shared<Planner>()](const ClusterState& view, const Queue& queue,
                                                       WallTime now, Explaining explaining) {
                 return planner->Plan(view, queue, now, explaining);
               }};
};

TEST_F(ReplaceShapeTest, ASliceOfOnePodMovesToAnyFreeBox) {
  for (const char* name : {"node-a", "node-b", "node-c"}) world_.api.AddNode(name);
  Place("4x4", 2, 2, 16);
  const std::string kept = NodeOf("train-0");
  LoseWithNode("train-1");
  world_.api.AddPodWithClaim("train-9", "train", 16);
  world_.Settle();
  EXPECT_EQ(NodeOf("train-0"), kept) << "the other goes on";
  EXPECT_EQ(world_.api.pods().at("train-9").bound_rank, 1U);
  ASSERT_EQ(Status(world_).slices.size(), 2U);
  EXPECT_EQ(Status(world_).slices[1].domain, NodeOf("train-9"));
  EXPECT_EQ(Status(world_).slices[1].nodes, std::vector<std::string>{NodeOf("train-9")});
  ExpectWhole();
}

TEST_F(ReplaceShapeTest, APodMovesToTheOtherSideOfItsUltraServersPair) {
  AddUltraServer("us-0");
  Place("4x4x2", 1, 2, 16);
  const std::string kept = NodeOf("train-0");
  const int z = kept.back() - '0';
  LoseWithNode("train-1");
  world_.api.AddPodWithClaim("train-9", "train", 16);
  world_.Settle();
  const int next = NodeOf("train-9").back() - '0';
  EXPECT_EQ((next - z + 4) % 2, 1) << "neighbours on the ring of four";
  EXPECT_EQ(NodeOf("train-0"), kept);
  EXPECT_THAT(Status(world_).slices.at(0).nodes,
              ::testing::UnorderedElementsAre(kept, NodeOf("train-9")));
  ExpectWhole();
}

TEST_F(ReplaceShapeTest, APodMovesToTheOtherSideOfItsNeighbourOnTheNode) {
  world_.api.AddNode("node-a");
  Place("2x4", 1, 2, 4);
  const auto chips = [&](const std::string& pod) {
    const auto claim = world_.api.claims().at(pod + "-chips");
    std::set<int> places;
    for (const DeviceResult& result : claim.allocation->results) {
      places.insert(std::stoi(result.device.substr(std::string("neuron-device-").size())));
    }
    return places;
  };
  const std::set<int> lost = chips("train-1");
  world_.api.ChangeNode("node-a", [&](NodeFacts& node) {
    node.devices =
        NodeFactsOf({.name = "node-a", .broken = static_cast<std::uint16_t>(1U << *lost.begin())})
            .devices;
  });
  world_.api.FinishPod("train-1", false);
  world_.Settle();
  world_.api.AddPodWithClaim("train-9", "train", 4);
  world_.Settle();
  EXPECT_FALSE(chips("train-9").contains(*lost.begin()));
  std::set<int> together = chips("train-0");
  together.merge(chips("train-9"));
  EXPECT_EQ(together.size(), 8U);
  ExpectWhole();
}

TEST_F(ReplaceShapeTest, WhereNothingMakesTheShapeTheGangBeginsAgain) {
  for (const char* name : {"node-a", "node-b"}) world_.api.AddNode(name);
  Place("4x4", 2, 2, 16);
  LoseWithNode("train-1");
  world_.api.AddPodWithClaim("train-9", "train", 16);
  world_.Settle();
  EXPECT_FALSE(world_.api.pods().contains("train-0"));
  EXPECT_THAT(Message(world_), HasSubstr("elsewhere: "));
}

TEST_F(ReplaceShapeTest, AllPodsOfASliceMoveTogetherWheneverTheProgramDies) {
  for (int at = 1; at < 80; ++at) {
    SCOPED_TRACE(at);
    struct Again : ReplaceShapeTest {
      void TestBody() override {}
      using ReplaceShapeTest::AddUltraServer;
      using ReplaceShapeTest::LoseWithNode;
      using ReplaceShapeTest::NodeOf;
      using ReplaceShapeTest::Place;
      using ReplaceShapeTest::world_;
    };
    Again again;
    World& world = again.world_;
    for (const char* id : {"us-0", "us-1", "us-2"}) again.AddUltraServer(id);
    again.Place("4x4x4", 2, 8, 16);
    const std::string lost = again.NodeOf("train-4").substr(0, 4);
    for (int i = 4; i < 8; ++i) again.LoseWithNode(fmt::format("train-{}", i));
    world.crash_after = world.DoneSteps() + at;
    for (int i = 4; i < 8; ++i) {
      world.api.AddPodWithClaim(fmt::format("train-{}", 10 + i), "train", 16);
    }
    const bool whole = world.Settle();
    world.crash_after = 0;
    world.Start();
    world.Settle();
    std::set<std::string> servers;
    for (int i = 4; i < 8; ++i) {
      servers.insert(again.NodeOf(fmt::format("train-{}", 10 + i)).substr(0, 4));
    }
    EXPECT_EQ(servers.size(), 1U);
    EXPECT_FALSE(servers.contains(lost));
    EXPECT_EQ(Status(world).phase, GangPhase::kRunning) << Message(world);
    EXPECT_EQ(Status(world).slices.at(1).domain, *servers.begin());
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
    if (whole) break;
  }
}

class ReplaceElsewhereTest : public ReplaceTest {
 protected:
  ReplaceElsewhereTest() {
    world_.api.AddNode("node-c");
    Lose();
    world_.Settle();
    world_.api.ChangeNode(lost_.node, [](NodeFacts& node) { node.schedulable = false; });
    world_.Settle();
  }
};

TEST_F(ReplaceElsewhereTest, WhereTheChipsDoNotTakeThePodItGetsFreeOnes) {
  world_.api.AddPodWithClaim("train-9", "train", 10);
  world_.Settle();
  EXPECT_EQ(world_.api.pods().at("train-9").node, "node-c");
  EXPECT_EQ(world_.api.pods().at("train-9").bound_rank, lost_.bound_rank);
  EXPECT_TRUE(world_.api.pods().contains("train-0")) << "the other goes on";
  EXPECT_EQ(Status(world_).phase, GangPhase::kRunning);
  EXPECT_EQ(world_.core().snapshot()->cluster->holding_count(), 2U);
  world_.Start();
  world_.Settle();
  EXPECT_EQ(world_.core().snapshot()->cluster->holding_count(), 2U);
  world_.api.CheckAtRest();
  EXPECT_THAT(world_.api.faults, IsEmpty());
}

TEST_F(ReplaceElsewhereTest, TheChipsThatItLeavesAreFree) {
  world_.api.AddPodWithClaim("train-9", "train", 10);
  world_.Settle();
  world_.api.ChangeNode(lost_.node, [](NodeFacts& node) { node.schedulable = true; });
  world_.api.AddPodWithClaim("other", "", 16);
  world_.Settle();
  EXPECT_EQ(world_.api.pods().at("other").node, lost_.node);
}

TEST_F(ReplaceElsewhereTest, APodThatAsksForLessDoesNotTakeTheRank) {
  world_.api.AddPodWithClaim("train-9", "train", 9);
  world_.Settle();
  EXPECT_FALSE(world_.api.pods().contains("train-0"));
  EXPECT_THAT(Message(world_), HasSubstr("asks for other devices"));
}

TEST_F(ReplaceElsewhereTest, ItMovesWheneverTheProgramDies) {
  struct Again : ReplaceElsewhereTest {
    void TestBody() override {}
    World& world() { return world_; }
  };
  for (int at = 1; at < 60; ++at) {
    SCOPED_TRACE(at);
    Again again;
    World& world = again.world();
    world.api.AddPodWithClaim("train-9", "train", 10);
    world.crash_after = world.DoneSteps() + at;
    const bool whole = world.Settle();
    world.crash_after = 0;
    world.Start();
    world.Settle();
    EXPECT_EQ(world.api.pods().at("train-9").node, "node-c");
    EXPECT_TRUE(world.api.pods().contains("train-0"));
    EXPECT_EQ(Status(world).phase, GangPhase::kRunning);
    EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 2U);
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
    if (whole) break;
  }
}

TEST_F(ReplaceTest, ItIsReplacedWheneverTheProgramDies) {
  for (int at = 1; at < 60; ++at) {
    SCOPED_TRACE(at);
    World world(
        {}, [planner = std::make_shared<Planner>()](const ClusterState& view, const Queue& queue,
                                                    WallTime now, Explaining explaining) {
          return planner->Plan(view, queue, now, explaining);
        });
    world.api.AddClass();
    AddGangOfTwo(world.api);
    world.api.ChangeGang("train",
                         [](GangFact& gang) { gang.failure_policy = FailurePolicy::kReplace; });
    world.Settle();
    const std::string node = world.api.pods().at("train-1").node;
    world.api.FinishPod("train-1", false);
    world.api.AddPodWithClaim("train-9", "train", 10);
    world.crash_after = world.DoneSteps() + at;
    const bool whole = world.Settle();
    world.crash_after = 0;
    world.Start();
    world.Settle();
    EXPECT_EQ(world.api.pods().at("train-9").node, node);
    EXPECT_EQ(world.api.pods().at("train-9").bound_rank, 1U);
    EXPECT_TRUE(world.api.pods().contains("train-0"));
    EXPECT_EQ(Status(world).phase, GangPhase::kRunning);
    EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 2U);
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
    if (whole) break;
  }
}

}  // namespace
}  // namespace tahoma::controller

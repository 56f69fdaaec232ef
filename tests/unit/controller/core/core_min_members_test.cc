// A gang with minMembers begins with as many pods as fit, goes on without lost ones, grows again,
// and follows its `members`, whenever the program dies.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/core/core.h"
#include "controller/plan/planner.h"
#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Pods of 10 chips: each node takes one.
class Elastic : public World {
 public:
  Elastic(int nodes, int members, int least)
      : World({},
              [planner = std::make_shared<Planner>()](const ClusterState& view, const Queue& queue,
                                                      WallTime now, Explaining explaining) {
                return planner->Plan(view, queue, now, explaining);
              }) {
    api.AddClass();
    for (int i = 0; i < nodes; ++i) api.AddNode(fmt::format("node-{}", i));
    api.AddGang("train", members);
    api.ChangeGang("train", [&](GangFact& gang) { gang.min_members = least; });
  }

  void AddPods(int first, int last) {
    for (int i = first; i <= last; ++i)
      api.AddPodWithClaim(fmt::format("train-{}", i), "train", 10);
  }
  void SetMembers(int members) {
    api.ChangeGang("train", [&](GangFact& gang) { gang.members = members; });
  }
  std::vector<std::string> Bound() const {
    std::vector<std::string> bound;
    for (const auto& [name, pod] : api.pods()) {
      if (!pod.node.empty() && !pod.finished) bound.push_back(name);
    }
    return bound;
  }
  std::uint32_t RankOf(const std::string& pod) const { return api.pods().at(pod).bound_rank; }
  GangStatus Status() const { return api.statuses().at("train"); }
  GangCondition ConditionOf(ConditionType type) const {
    const GangStatus status = Status();
    return *std::ranges::find(status.conditions, type, &GangCondition::type);
  }
  std::string Waits(const std::string& pod) const {
    const auto found = api.conditions().find(pod);
    return found == api.conditions().end() ? "" : found->second;
  }
  std::vector<std::string> Held() {
    std::vector<std::string> held;
    core().snapshot()->cluster->ForEachHolding(
        [&](const Holding& holding) { held.push_back(holding.claim.name); });
    return held;
  }

  // Nothing leaks, no device and no rank is given twice, and no fewer pods than minMembers run.
  void ExpectSound() {
    api.CheckAtRest();
    EXPECT_THAT(api.faults, IsEmpty());
    const std::vector<std::string> bound = Bound();
    EXPECT_EQ(Held().size(), bound.size()) << fmt::format("{}", fmt::join(Held(), " "));
    std::set<std::uint32_t> ranks;
    for (const std::string& pod : bound) ranks.insert(RankOf(pod));
    EXPECT_EQ(ranks.size(), bound.size()) << "a rank twice";
  }
};

TEST(CoreMinMembersTest, AGangBeginsWithTheFirstPodsThatFit) {
  Elastic world(3, 5, 2);
  world.AddPods(0, 4);
  world.Settle();
  EXPECT_THAT(world.Bound(), ElementsAre("train-0", "train-1", "train-2"));
  EXPECT_EQ(world.Status().phase, GangPhase::kRunning);
  EXPECT_EQ(world.Status().ready_members, 3);
  EXPECT_EQ(world.ConditionOf(ConditionType::kReady).message, "3 of 5 members are ready");
  EXPECT_THAT(world.Waits("train-3"), HasSubstr("free"));
  world.ExpectSound();
}

TEST(CoreMinMembersTest, AllPodsBeginTogetherWhereAllFit) {
  Elastic world(5, 5, 2);
  world.AddPods(0, 4);
  world.Settle();
  EXPECT_EQ(world.Bound().size(), 5U);
  EXPECT_EQ(EventsOf(world.api, EventReason::kMemberAdded), 0);
  world.ExpectSound();
}

TEST(CoreMinMembersTest, FewerThanTheLeastDoNotBegin) {
  Elastic world(1, 5, 2);
  world.AddPods(0, 0);
  world.Settle();
  EXPECT_EQ(world.ConditionOf(ConditionType::kPodsReady).message,
            "1 of 5 pods exist, and minMembers is 2");
  world.AddPods(1, 4);
  world.Settle();
  EXPECT_THAT(world.Bound(), IsEmpty());
  EXPECT_THAT(world.ConditionOf(ConditionType::kPlaced).message,
              HasSubstr("minMembers, 2 of 5 pods: "));
  world.api.AddNode("node-9");
  world.Settle();
  EXPECT_THAT(world.Bound(), ElementsAre("train-0", "train-1"));
  world.ExpectSound();
}

TEST(CoreMinMembersTest, ItGrowsWhenPodsComeAndWhenChipsAreFree) {
  Elastic world(3, 4, 2);
  world.AddPods(0, 1);
  world.Settle();
  EXPECT_EQ(world.Bound().size(), 2U);
  world.AddPods(2, 3);
  world.Settle();
  EXPECT_THAT(world.Bound(), ElementsAre("train-0", "train-1", "train-2"));
  EXPECT_EQ(world.RankOf("train-2"), 2U);
  world.api.AddNode("node-9");
  world.Settle();
  EXPECT_EQ(world.Bound().size(), 4U);
  EXPECT_EQ(world.RankOf("train-3"), 3U);
  EXPECT_EQ(EventsOf(world.api, EventReason::kMemberAdded), 2);
  EXPECT_EQ(world.ConditionOf(ConditionType::kReady).message, "4 of 4 members are ready");
  world.ExpectSound();
}

TEST(CoreMinMembersTest, APodWithoutItsClaimDoesNotKeepTheOthersFromBeginning) {
  Elastic world(3, 3, 2);
  world.AddPods(0, 2);
  world.api.RemoveClaim("train-1-chips");
  world.Settle();
  EXPECT_THAT(world.Bound(), ElementsAre("train-0", "train-2"));
  EXPECT_THAT(world.Waits("train-1"), HasSubstr("claim train-1-chips does not exist"));
  world.api.AddClaim("train-1-chips", 10);
  world.Settle();
  EXPECT_EQ(world.Bound().size(), 3U);
  EXPECT_EQ(world.RankOf("train-1"), 2U) << "the others keep their ranks";
  world.ExpectSound();
}

TEST(CoreMinMembersTest, ItGoesOnWithoutALostMemberAndALaterPodHasTheRank) {
  for (const bool deleted : {false, true}) {
    SCOPED_TRACE(deleted);
    Elastic world(3, 3, 2);
    world.AddPods(0, 2);
    world.Settle();
    if (deleted) world.api.DeletePod("train-1");
    if (!deleted) world.api.FinishPod("train-1", false);
    world.Settle();
    EXPECT_THAT(world.Bound(), ElementsAre("train-0", "train-2"));
    EXPECT_EQ(world.Status().phase, GangPhase::kRunning);
    EXPECT_EQ(world.Status().bound_members, 2);
    EXPECT_EQ(EventsOf(world.api, EventReason::kMemberGone), 1);
    EXPECT_EQ(EventsOf(world.api, EventReason::kGangMemberLost), 0);
    EXPECT_EQ(world.Held().size(), 2U) << "the chips of the lost pod are free";
    world.Start();
    world.Settle();
    world.ExpectSound();
    world.AddPods(7, 7);
    world.Settle();
    EXPECT_EQ(world.RankOf("train-7"), 1U);
    EXPECT_EQ(world.Bound().size(), 3U);
    world.Start();
    world.Settle();
    world.ExpectSound();
    for (const std::string& pod : world.Bound()) world.api.FinishPod(pod, true);
    world.Settle();
    EXPECT_EQ(world.journal.size(), 0U);
    EXPECT_THAT(world.Held(), IsEmpty());
    EXPECT_EQ(world.Status().phase, GangPhase::kFinished);
  }
}

// The defect: a released claim was read again after a start, and its absence ended the gang.
TEST(CoreMinMembersTest, ALateMemberThatHasEndedIsNotMissedAfterAStart) {
  Elastic world(3, 3, 2);
  world.AddPods(0, 1);
  world.Settle();
  world.AddPods(2, 2);
  world.Settle();
  world.api.FinishPod("train-2", true);
  world.Settle();
  world.api.DeletePod("train-2");
  world.api.RemoveClaim("train-2-chips");
  world.Settle();
  world.Start();
  world.Settle();
  EXPECT_EQ(EventsOf(world.api, EventReason::kGangUndone), 0);
  EXPECT_THAT(world.Bound(), ElementsAre("train-0", "train-1"));
  world.ExpectSound();
}

TEST(CoreMinMembersTest, BelowTheLeastTheFailurePolicyDecides) {
  for (const auto policy :
       {FailurePolicy::kRestartAll, FailurePolicy::kFail, FailurePolicy::kReplace}) {
    Elastic world(3, 3, 2);
    world.api.ChangeGang("train", [&](GangFact& gang) { gang.failure_policy = policy; });
    world.AddPods(0, 2);
    world.Settle();
    world.api.FinishPod("train-1", false);
    world.Settle();
    EXPECT_EQ(world.Bound().size(), 2U);
    world.api.FinishPod("train-2", false);
    world.Settle();
    if (policy == FailurePolicy::kReplace) {
      EXPECT_THAT(world.Bound(), ElementsAre("train-0"));
      EXPECT_EQ(world.Status().phase, GangPhase::kDegraded);
      world.AddPods(8, 8);
      world.Settle();
      EXPECT_EQ(world.RankOf("train-8"), 2U);
      EXPECT_EQ(world.Status().phase, GangPhase::kRunning);
      world.ExpectSound();
      continue;
    }
    EXPECT_THAT(world.Bound(), IsEmpty());
    EXPECT_EQ(world.journal.size(), 0U);
    EXPECT_EQ(world.Status().phase,
              policy == FailurePolicy::kFail ? GangPhase::kFailed : GangPhase::kPending);
  }
}

TEST(CoreMinMembersTest, AGangMadeSmallerEndsThePodsOfTheHighestRanks) {
  Elastic world(5, 5, 2);
  world.AddPods(0, 4);
  world.Settle();
  world.SetMembers(3);
  world.Settle();
  EXPECT_THAT(world.Bound(), ElementsAre("train-0", "train-1", "train-2"));
  EXPECT_EQ(world.Status().phase, GangPhase::kRunning);
  EXPECT_EQ(world.ConditionOf(ConditionType::kReady).message, "3 of 3 members are ready");
  world.AddPods(5, 5);
  world.Settle();
  EXPECT_EQ(world.Waits("train-5"), "3 of 3 members run");
  world.ExpectSound();
  world.SetMembers(5);
  world.Settle();
  EXPECT_EQ(world.RankOf("train-5"), 3U);
  EXPECT_EQ(world.Bound().size(), 4U);
  world.ExpectSound();
}

TEST(CoreMinMembersTest, AMemberThatIsNotReadyInTimeIsEndedAlone) {
  Elastic world(3, 3, 2);
  world.AddPods(0, 1);
  world.Settle();
  world.api.starts_pods = false;
  world.AddPods(2, 2);
  world.Settle();
  EXPECT_EQ(world.Bound().size(), 3U);
  world.MoveTo(world.Time().wall + minutes(11));
  EXPECT_THAT(world.Bound(), ElementsAre("train-0", "train-1"));
  EXPECT_EQ(world.Status().phase, GangPhase::kRunning);
  world.ExpectSound();
}

TEST(CoreMinMembersTest, AWaitingPodDoesNotUndoAGangWhoseJournalWasLost) {
  Elastic world(2, 3, 2);
  world.AddPods(0, 2);
  world.Settle();
  EXPECT_EQ(world.Bound().size(), 2U);
  world.journal = MemoryJournal();
  world.Start();
  world.Settle();
  EXPECT_THAT(world.Bound(), ElementsAre("train-0", "train-1"));
  world.api.AddNode("node-9");
  world.Settle();
  EXPECT_EQ(world.Bound().size(), 3U);
  world.ExpectSound();
}

// The life of an elastic gang in short: it begins small, grows, loses a member, grows again, is
// made smaller.
void Live(Elastic& world, const std::function<void()>& settle) {
  world.AddPods(0, 1);
  settle();
  world.AddPods(2, 3);
  settle();
  world.api.FinishPod("train-1", false);
  settle();
  world.AddPods(4, 4);
  settle();
  world.SetMembers(3);
  settle();
}

void ExpectLived(Elastic& world) {
  EXPECT_EQ(world.Bound().size(), 3U);
  EXPECT_TRUE(world.api.pods().contains("train-0")) << "it went on all the time";
  EXPECT_EQ(EventsOf(world.api, EventReason::kGangUndone), 0);
  EXPECT_EQ(world.Status().phase, GangPhase::kRunning);
  world.ExpectSound();
}

TEST(CoreMinMembersTest, ItLivesWheneverTheProgramDies) {
  int deaths = 0;
  for (int at = 1; at < 400; ++at) {
    SCOPED_TRACE(at);
    Elastic world(4, 4, 2);
    world.crash_after = at;
    bool died = false;
    Live(world, [&] {
      if (world.Settle()) return;
      died = true;
      world.crash_after = 0;
      world.Start();
      world.Settle();
    });
    ExpectLived(world);
    if (!died) break;
    ++deaths;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(deaths, 40);
}

TEST(CoreMinMembersTest, ItLivesWhicheverWriteGoesWrong) {
  for (const Fate what : {Fate::kConflict, Fate::kNotDone, Fate::kAnswerLost, Fate::kLate}) {
    for (int at = 1; at < 200; ++at) {
      SCOPED_TRACE(fmt::format("{} {}", static_cast<int>(what), at));
      Elastic world(4, 4, 2);
      world.fate = [&](int n) { return n == at ? what : Fate::kNormal; };
      Live(world, [&] { world.Settle(); });
      ExpectLived(world);
      if (world.writes < at) break;
      ASSERT_FALSE(HasFailure());
    }
  }
}

// A pod that joins is deleted at any moment, with the answers to the claim's writes late or lost:
// the claim's chips are nobody's then, and the others go on.
TEST(CoreMinMembersTest, APodThatGoesWhileItJoinsTakesNothingWithIt) {
  for (const Fate what : {Fate::kNormal, Fate::kAnswerLost, Fate::kLate, Fate::kRefused}) {
    for (const bool with_claim : {false, true}) {
      for (int steps = 1; steps < 14; ++steps) {
        SCOPED_TRACE(fmt::format("{} {} {}", static_cast<int>(what), with_claim, steps));
        Elastic world(3, 3, 2);
        world.AddPods(0, 1);
        world.Settle();
        const int before = world.writes;
        world.fate = [&](int n) { return n > before && n <= before + 2 ? what : Fate::kNormal; };
        world.AddPods(2, 2);
        world.Settle(steps);
        if (world.api.pods().contains("train-2")) world.api.DeletePod("train-2");
        if (with_claim) world.api.RemoveClaim("train-2-chips");
        world.Settle();
        EXPECT_THAT(world.Bound(), ElementsAre("train-0", "train-1"));
        EXPECT_EQ(EventsOf(world.api, EventReason::kGangUndone), 0);
        world.ExpectSound();
        world.AddPods(5, 5);
        world.Settle();
        EXPECT_EQ(world.Bound().size(), 3U);
        EXPECT_EQ(world.RankOf("train-5"), 2U);
        world.ExpectSound();
        ASSERT_FALSE(HasFailure());
      }
    }
  }
}

// As many as fit is the largest number of pods, found by trying each.
TEST(CoreMinMembersTest, AsManyBeginAsThereIsRoomFor) {
  for (int nodes = 1; nodes <= 9; ++nodes) {
    for (int pods = 1; pods <= 9; ++pods) {
      for (int least = 1; least <= pods; least += 2) {
        SCOPED_TRACE(fmt::format("{} nodes, {} pods, at least {}", nodes, pods, least));
        Elastic world(nodes, pods, least);
        world.AddPods(0, pods - 1);
        world.Settle();
        const int fit = std::min(nodes, pods);
        EXPECT_EQ(std::ssize(world.Bound()), fit >= least ? fit : 0);
        EXPECT_EQ(EventsOf(world.api, EventReason::kMemberAdded), 0);
      }
    }
  }
}

}  // namespace
}  // namespace tahoma::controller

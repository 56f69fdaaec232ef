#include "controller/core/core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "one", for which the claim "shared" is allocated, then "two" on the same.
void RunTwoOnOneClaim(World& world) {
  world.api.AddClaim("shared", 4);
  world.api.AddPod("one", "", {"shared"});
  world.Settle();
  world.api.AddPod("two", "", {"shared"});
  world.Settle();
}

bool AllReserved(const FakeApi& api) {
  return std::all_of(api.claims().begin(), api.claims().end(),
                     [](const auto& claim) { return !claim.second.reserved_for.empty(); });
}

TEST(CoreTest, AGangIsAllocatedThenBound) {
  World world;
  AddGangOfTwo(world.api);
  world.Settle();
  world.api.CheckAtRest();
  EXPECT_THAT(world.api.faults, IsEmpty());
  EXPECT_EQ(BoundPods(world.api), 2);
  EXPECT_EQ(world.api.pods().at("train-1").bound_rank, 1U);
  EXPECT_EQ(world.api.statuses().at("train").phase, GangPhase::kRunning);
  EXPECT_EQ(world.api.statuses().at("train").bound_members, 2);
  // Ten chips on each of two instances: EFA is what they wait for.
  EXPECT_THAT(world.api.statuses().at("train").predicted_all_reduce, EndsWith("ms"));
}

TEST(CoreTest, APodWithoutAGangIsAGangOfOne) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddPodWithClaim("solo", "", 4);
  world.Settle();
  EXPECT_EQ(world.api.pods().at("solo").node, "node-a");
  EXPECT_THAT(world.api.faults, IsEmpty());
}

TEST(CoreTest, NothingIsWrittenBeforeAllMembersAndClaimsExist) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddPod("train-0", "train", {"c0"});
  world.Settle();
  world.api.AddClaim("c0", 4);
  world.Settle();
  EXPECT_EQ(BoundPods(world.api), 0);
  world.api.AddGang("train", 2);
  world.Settle();
  EXPECT_EQ(world.api.statuses().at("train").conditions.at(0).message, "1 of 2 pods exist");
  EXPECT_THAT(world.api.conditions().at("train-0"), HasSubstr("1 of 2 pods exist"));
  world.api.AddPodWithClaim("train-1", "train", 4);
  world.Settle();
  EXPECT_EQ(BoundPods(world.api), 2);
}

TEST(CoreTest, AGangThatDoesNotFitSaysSoAndStartsWhenRoomIsFreed) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddPodWithClaim("first", "", 16);
  world.Settle();
  world.api.AddGang("train", 1);
  world.api.AddPodWithClaim("train-0", "train", 8);
  world.Settle();
  EXPECT_EQ(world.api.statuses().at("train").phase, GangPhase::kPending);
  EXPECT_EQ(world.api.statuses().at("train").reason, GangReason::kWaitsForCapacity);
  EXPECT_EQ(world.api.conditions().at("train-0"), "no node has room");
  world.api.FinishPod("first", true);
  world.Settle();
  EXPECT_EQ(world.api.pods().at("train-0").node, "node-a");
  world.api.CheckAtRest();
  EXPECT_THAT(world.api.faults, IsEmpty());
}

TEST(CoreTest, AFinishedGangLeavesTheJournalEmptyAndAllChipsFree) {
  World world;
  AddGangOfTwo(world.api);
  world.Settle();
  world.api.FinishPod("train-0", true);
  world.api.FinishPod("train-1", true);
  world.Settle();
  EXPECT_EQ(world.journal.size(), 0U);
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 0U);
  const GangStatus ended = world.api.statuses().at("train");
  EXPECT_FALSE(ended.placement.empty());
  ASSERT_TRUE(ended.start_time && ended.completion_time);
  EXPECT_LE(*ended.start_time, *ended.completion_time);
  // The defect: the conditions said that 0 of 2 pods exist.
  for (const bool restarted : {false, true}) {
    if (restarted) world.Start();
    world.Settle();
    const GangStatus& status = world.api.statuses().at("train");
    EXPECT_EQ(status.phase, GangPhase::kFinished);
    EXPECT_EQ(status.placement, ended.placement);
    EXPECT_EQ(status.slices, ended.slices);
    EXPECT_EQ(status.start_time, ended.start_time);
    EXPECT_EQ(status.completion_time, ended.completion_time);
    ASSERT_EQ(status.conditions.size(), 4U);
    for (const GangCondition& condition : status.conditions) {
      const bool holds = condition.type != ConditionType::kReady;
      EXPECT_EQ(condition.status == ConditionStatus::kTrue, holds) << ToString(condition.type);
      EXPECT_EQ(condition.reason, GangReason::kPodsEnded);
      EXPECT_EQ(condition.message, "all pods have ended");
    }
  }
}

// One answer for the admin API and for the Gang's status.
TEST(CoreTest, TheViewOfAGangGivesTheReasonOfItsStatus) {
  World world;
  AddGangOfTwo(world.api);
  ASSERT_TRUE(world.Settle());
  world.api.ChangePod("train-0", [](PodFact& pod) { pod.ready = false; });
  ASSERT_TRUE(world.Settle(3000, false));
  const auto view = *world.core().snapshot()->gangs.Find(GangRef{{"default", "train"}, false});
  const GangStatus& status = world.api.statuses().at("train");
  EXPECT_EQ(view->phase, GangPhase::kDegraded);
  EXPECT_EQ(view->reason, GangReason::kMembersNotReady);
  EXPECT_EQ(view->phase, status.phase);
  EXPECT_EQ(view->reason, status.reason);
}

// As a Job does, which replaces pods that failed.
TEST(CoreTest, APodThatComesForOneThatEndedIsToldWhatItWaitsFor) {
  World world;
  AddGangOfTwo(world.api);
  world.Settle();
  world.api.FinishPod("train-1", false);
  world.api.AddPodWithClaim("train-2", "train", 10);
  world.Settle();
  EXPECT_THAT(world.api.conditions().at("train-2"), HasSubstr("1 of 2 pods exist"));
  EXPECT_THAT(world.api.conditions().at("train-2"), HasSubstr("pod train-1 failed"));
  world.api.AddPodWithClaim("train-3", "train", 10);
  world.Settle();
  EXPECT_NE(world.api.pods().at("train-2").node, "");
  EXPECT_NE(world.api.pods().at("train-3").node, "");
  EXPECT_THAT(world.api.faults, IsEmpty());
}

TEST(CoreTest, ADeletedMemberBeforeTheFirstBindUndoesTheGang) {
  for (int at = 1; at <= 8; ++at) {
    SCOPED_TRACE(at);
    World world;
    AddGangOfTwo(world.api);
    world.fate = [&](int n) {
      if (n == at && !world.api.pods().at("train-1").deleting) world.api.DeletePod("train-1");
      return Fate::kNormal;
    };
    world.Settle();
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
    EXPECT_EQ(world.core().snapshot()->runs_in_flight, 0U);
  }
}

TEST(CoreTest, AClaimOfSomebodyElseIsNeverOverwritten) {
  World world;
  AddGangOfTwo(world.api);
  world.api.AddClaim("foreign", 16);
  world.Settle();
  EXPECT_THAT(world.api.faults, IsEmpty());
  EXPECT_EQ(world.api.claims().at("foreign").allocation, nullptr);
}

TEST(CoreTest, ASharedClaimIsReservedForTheSecondPodOnTheSameNode) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddNode("node-b");
  RunTwoOnOneClaim(world);
  EXPECT_EQ(world.api.pods().at("one").node, world.api.pods().at("two").node);
  EXPECT_EQ(world.api.claims().at("shared").reserved_for.size(), 2U);
  world.api.FinishPod("one", true);
  world.Settle();
  EXPECT_NE(world.api.claims().at("shared").allocation, nullptr);
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 1U);
  world.api.FinishPod("two", true);
  world.Settle();
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 0U);
  EXPECT_THAT(world.api.faults, IsEmpty());
}

// Claims and pods come on two watches. What the slower one tells of the time before our own writes
// is no news: the claim still has what we gave it, though its pods have ended already.
TEST(CoreTest, AWatchOfClaimsThatLagsFreesNoChipThatIsStillAllocated) {
  World world;
  AddGangOfTwo(world.api);
  world.api.AddPodWithClaim("next", "", 16);
  world.Settle(1);
  world.claims_lag = true;
  world.Settle(3000, false);
  ASSERT_EQ(BoundPods(world.api), 2);
  for (const char* pod : {"train-0", "train-1"}) world.api.FinishPod(pod, true);
  world.Settle(3000, false);
  world.claims_lag = false;
  world.Settle(3000, false);
  EXPECT_THAT(world.api.faults, IsEmpty());
  EXPECT_EQ(world.api.pods().at("next").node, "") << "nobody has given the chips back";
  world.Settle();
  EXPECT_THAT(world.api.faults, IsEmpty());
  EXPECT_NE(world.api.pods().at("next").node, "");
}

TEST(CoreTest, APodThatIsMadeAgainSharesTheClaimThatOthersKept) {
  World world;
  world.api.AddNode("node-a");
  RunTwoOnOneClaim(world);
  // First the pod that found the claim allocated, then the one for which it was.
  for (const char* name : {"two", "one"}) {
    SCOPED_TRACE(name);
    world.api.DeletePod(name);
    world.Settle();
    EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 1U) << "the other runs on it";
    world.api.AddPod(name, "", {"shared"});
    world.Settle();
    EXPECT_EQ(world.api.pods().at(name).node, "node-a");
    EXPECT_EQ(world.api.claims().at("shared").reserved_for.size(), 2U);
  }
  world.api.AddPodWithClaim("most", "", 13);
  world.Settle();
  EXPECT_EQ(world.api.pods().at("most").node, "") << "4 of 16 chips are the shared claim's";
  world.Start();
  world.api.FinishPod("one", true);
  world.api.FinishPod("two", true);
  world.Settle();
  EXPECT_EQ(world.api.pods().at("most").node, "node-a");
  EXPECT_EQ(world.api.claims().at("shared").allocation, nullptr);
  EXPECT_THAT(world.api.faults, IsEmpty());
}

// A claim's devices belong to the pod that got it first, then as the API says: also when both the
// second pod and the claim vanish in one moment.
TEST(CoreTest, ASharedClaimThatVanishesWithItsLastPodIsHeldNoMore) {
  World world;
  world.api.AddNode("node-a");
  RunTwoOnOneClaim(world);
  world.api.FinishPod("one", true);
  world.Settle();
  ASSERT_EQ(world.core().snapshot()->cluster->holding_count(), 1U);
  world.api.FinishPod("two", true);
  world.api.RemoveClaim("shared");
  world.Settle();
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 0U);
  EXPECT_EQ(world.core().snapshot()->runs_in_flight, 0U);
}

// A cluster's API, and the one of standalone mode.
class EitherApiTest : public ::testing::TestWithParam<bool> {
 protected:
  static CoreOptions Options() { return {.journal_beside_api = GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(All, EitherApiTest, ::testing::Bool(),
                         [](const auto& api) { return api.param ? "Beside" : "Cluster"; });

// Every write of the commit fails once with every failure; the gang is bound in the end all the
// same.
TEST_P(EitherApiTest, EveryWriteMayFailOnceInAnyWay) {
  for (const Fate what :
       {Fate::kConflict, Fate::kRefused, Fate::kNotDone, Fate::kAnswerLost, Fate::kLate}) {
    for (int at = 1; at <= 12; ++at) {
      SCOPED_TRACE(fmt::format("fate {} at write {}", static_cast<int>(what), at));
      World world(Options());
      AddGangOfTwo(world.api);
      world.fate = [&](int n) { return n == at ? what : Fate::kNormal; };
      world.Settle();
      world.api.CheckAtRest();
      EXPECT_THAT(world.api.faults, IsEmpty());
      EXPECT_EQ(BoundPods(world.api), 2);
    }
  }
}

// A pod goes before a write, and that write meets every fate; then everything goes. (A finalizer
// that comes after all of it holds no device and goes with the claim, so no write comes that late
// here.)
TEST_P(EitherApiTest, WhateverIsDeletedAndWhateverFailsNothingIsKept) {
  for (const Fate what :
       {Fate::kNormal, Fate::kConflict, Fate::kRefused, Fate::kNotDone, Fate::kAnswerLost}) {
    for (int at = 1; at <= 12; ++at) {
      for (const std::string name : {"train-0", "train-1"}) {
        SCOPED_TRACE(fmt::format("{}: fate {} at write {}", name, static_cast<int>(what), at));
        World world(Options());
        AddGangOfTwo(world.api);
        world.fate = [&](int n) {
          if (n != at) return Fate::kNormal;
          if (world.api.pods().contains(name)) world.api.DeletePod(name);
          return what;
        };
        world.Settle();
        world.api.CheckAtRest();
        for (const char* pod : {"train-0", "train-1"}) {
          if (world.api.pods().contains(pod)) world.api.DeletePod(pod);
        }
        world.Settle();
        EXPECT_THAT(world.api.faults, IsEmpty());
        EXPECT_EQ(world.journal.size(), 0U);
        EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 0U);
        for (const auto& [key, claim] : world.api.claims()) {
          EXPECT_EQ(claim.allocation, nullptr) << key;
          EXPECT_THAT(claim.reserved_for, IsEmpty()) << key;
        }
      }
    }
  }
}

// The gang's pods are deleted and made again, under the same names, before any of the writes.
TEST(CoreTest, AGangThatIsMadeAgainAtAnyMomentIsBoundInTheEnd) {
  World undisturbed;
  AddGangOfTwo(undisturbed.api);
  undisturbed.Settle();
  ASSERT_GT(undisturbed.writes, 8);
  for (int at = 1; at <= undisturbed.writes; ++at) {
    SCOPED_TRACE(at);
    World world;
    AddGangOfTwo(world.api);
    world.fate = [&](int n) {
      if (n != at) return Fate::kNormal;
      for (const char* pod : {"train-0", "train-1"}) {
        if (world.api.pods().contains(pod)) world.api.DeletePod(pod);
      }
      return Fate::kNormal;
    };
    world.Settle();
    for (const std::string pod : {"train-0", "train-1"}) {
      ASSERT_FALSE(world.api.pods().contains(pod));
      world.api.AddPod(pod, "train", {pod + "-chips"});
    }
    world.Settle();
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
    EXPECT_EQ(BoundPods(world.api), 2);
  }
}

TEST(CoreTest, AWriteThatIsRefusedForEverUndoesTheGang) {
  World world;
  AddGangOfTwo(world.api);
  int refused = 0;
  world.fate = [&](int n) {
    if (n >= 3 && refused < GangRun::kRefusalsMost * 4) {
      ++refused;
      return Fate::kRefused;
    }
    return Fate::kNormal;
  };
  world.Settle();
  world.api.CheckAtRest();
  EXPECT_THAT(world.api.faults, IsEmpty());
  EXPECT_EQ(BoundPods(world.api), 2);  // planned again after the trouble
  EXPECT_GE(world.core().snapshot()->counters.gangs_undone, 1U);
}

// To a watch that lags, a claim that was taken back from an undone gang is still allocated, and
// reserved for the pod that is planned again.
TEST(CoreTest, NoPodIsBoundOnAnOldWordOfItsClaim) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddPodWithClaim("one", "", 4);
  world.fate = [&](int n) {
    if (n < 3 || world.core().snapshot()->counters.gangs_undone > 0) return Fate::kNormal;
    world.claims_lag = true;
    return Fate::kRefused;
  };
  world.Settle();
  EXPECT_THAT(world.api.faults, IsEmpty());
  world.claims_lag = false;
  world.Settle();
  world.api.CheckAtRest();
  EXPECT_THAT(world.api.faults, IsEmpty());
  EXPECT_EQ(BoundPods(world.api), 1);
}

int CountSteps(CoreOptions options = {}) {
  int steps = 0;
  for (int at = 1; at < 200; ++at) {
    World trial(options);
    AddGangOfTwo(trial.api);
    trial.crash_after = at;
    if (trial.Settle()) break;
    steps = at;
  }
  return steps;
}

// The program dies before each journal write and before each API write, one after the other.
TEST_P(EitherApiTest, ACrashAtAnyWriteLeavesAllOrNothing) {
  const int steps = CountSteps(Options());
  EXPECT_GE(steps, GetParam() ? 7 : 9);
  for (int at = 1; at <= steps; ++at) {
    SCOPED_TRACE(at);
    World world(Options());
    AddGangOfTwo(world.api);
    world.crash_after = at;
    ASSERT_FALSE(world.Settle());
    world.crash_after = 0;
    world.Start();
    ASSERT_TRUE(world.Settle());
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
    EXPECT_EQ(BoundPods(world.api), 2);
    EXPECT_EQ(world.core().snapshot()->counters.gangs_undone, 0U);
  }
}

TEST(CoreTest, AClaimThatIsMadeWithItsFinalizerIsAllocatedWithAWriteLess) {
  World bare;
  AddGangOfTwo(bare.api);
  bare.Settle();
  World made_protected({.journal_beside_api = true});
  AddGangOfTwo(made_protected.api);
  made_protected.Settle();
  EXPECT_EQ(BoundPods(made_protected.api), 2);
  EXPECT_EQ(made_protected.writes, bare.writes - 2) << "a finalizer for each of the two claims";
}

// A controller starts, and finds a gang for which there is no room. Nothing says what its claims'
// finalizers mean but where the journal is: elsewhere it may have been lost, with a commit whose
// allocations still arrive.
TEST(CoreTest, AFinalizerWithoutAnAllocationIsACommitOnlyWhereTheJournalCanBeLostAlone) {
  for (const bool beside_api : {false, true}) {
    SCOPED_TRACE(beside_api);
    World world(CoreOptions{.journal_beside_api = beside_api});
    world.api.protects_claims = true;
    world.api.AddNode("node-a");
    world.api.AddGang("train", 2);
    world.api.AddPodWithClaim("train-0", "train", 10);
    world.api.AddPodWithClaim("train-1", "train", 10);
    world.Settle();
    EXPECT_EQ(world.core().snapshot()->counters.journal_records == 0, beside_api);
    EXPECT_EQ(world.api.claims().at("train-0-chips").protected_by_finalizer, beside_api);
    EXPECT_EQ(world.core().snapshot()->counters.gangs_undone, beside_api ? 0U : 1U);
    EXPECT_EQ(EventsOf(world.api, EventReason::kGangUndone), beside_api ? 0 : 1);
    world.api.AddNode("node-b");
    world.Settle();
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
    EXPECT_EQ(BoundPods(world.api), 2);
  }
}

// As before, but the journal is lost with the crash: what is published decides. When every claim
// is held and no pod bound, binds may be on their way: those pods are deleted, nothing else is
// safe.
TEST(CoreTest, ALostDiskIsRebuiltFromTheApi) {
  const int steps = CountSteps();
  int deleted = 0;
  for (int at = 1; at <= steps + 1; ++at) {
    SCOPED_TRACE(at);
    World world;
    AddGangOfTwo(world.api);
    world.crash_after = at;
    world.Settle();
    world.crash_after = 0;
    world.journal.Lose();
    const bool unsafe = AllReserved(world.api) && BoundPods(world.api) == 0;
    deleted += unsafe ? 1 : 0;
    world.Start();
    ASSERT_TRUE(world.Settle());
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
    EXPECT_EQ(world.api.pods().size(), unsafe ? 0U : 2U);
    EXPECT_EQ(BoundPods(world.api), unsafe ? 0 : 2);
    EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), unsafe ? 0U : 2U);
    EXPECT_EQ(world.journal.size() == 0, unsafe);
  }
  EXPECT_GT(deleted, 0);
  EXPECT_LT(deleted, steps / 2);
}

// A process dies while its first bind is still on its way. A member goes before the next process
// starts, so that the gang must be undone; then the bind arrives.
TEST(CoreTest, ABindOfAnEarlierProcessThatArrivesLateLeavesNoPodWithoutItsClaim) {
  for (const bool journal_lost : {false, true}) {
    SCOPED_TRACE(journal_lost);
    World world;
    AddGangOfTwo(world.api);
    world.fate = [&](int) {
      if (!AllReserved(world.api)) return Fate::kNormal;
      world.crash_after = 1;  // at the next write
      return Fate::kLate;
    };
    ASSERT_FALSE(world.Settle());
    world.crash_after = 0;
    world.fate = [](int) { return Fate::kNormal; };
    world.api.DeletePod("train-1");
    if (journal_lost) world.journal.Lose();
    world.Start();
    ASSERT_TRUE(world.Settle());
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
    EXPECT_EQ(BoundPods(world.api), 0);
    EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 0U);
  }
}

TEST(CoreTest, APodThatAnotherSchedulerHasBoundIsNotTakenOver) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddClaim("theirs", 2);
  world.api.AddPod("old", "", {"theirs"});
  world.api.BindByOther("old", "theirs", "node-a");
  world.Settle();
  EXPECT_THAT(world.api.faults, IsEmpty());
  EXPECT_EQ(world.api.pods().at("old").node, "node-a");
  EXPECT_TRUE(world.api.claims().at("theirs").ReservedFor(world.api.pods().at("old").uid));
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 1U) << "its chip is not free";
  EXPECT_EQ(world.journal.size(), 0U);
}

TEST(CoreTest, PodsThatEndedWhileTheControllerWasDownAreReleased) {
  World world;
  AddGangOfTwo(world.api);
  world.Settle();
  world.api.FinishPod("train-0", true);
  world.api.DeletePod("train-1");
  world.api.RunControllers();
  world.Start();
  world.Settle();
  EXPECT_EQ(world.journal.size(), 0U);
  world.MoveTo(world.Time().wall + std::chrono::minutes(6));  // kept for next pods until then
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 0U);
}

TEST(CoreTest, ANodeThatVanishesBeforeTheBindUndoesTheGang) {
  World world;
  AddGangOfTwo(world.api);
  bool removed = false;
  world.fate = [&](int n) {
    if (n == 3 && !removed) {
      removed = true;
      world.api.RemoveNode("node-b");
    }
    return Fate::kNormal;
  };
  world.Settle();
  world.api.CheckAtRest();
  EXPECT_THAT(world.api.faults, IsEmpty());
  EXPECT_EQ(BoundPods(world.api), 0);
  EXPECT_EQ(world.journal.size(), 0U);
}

// The defect: the gang was bound to the node that was gone.
TEST(CoreTest, ANodeThatVanishesWhileNoControllerRunsUndoesAGangThatIsNotBound) {
  for (const int at : {2, 3, 4, 5, 6}) {
    SCOPED_TRACE(at);
    World world;
    AddGangOfTwo(world.api);
    world.crash_after = at;
    ASSERT_FALSE(world.Settle());
    ASSERT_EQ(world.journal.size(), 1U) << "GangPrepared and no more";
    world.crash_after = 0;
    world.api.RemoveNode("node-b");
    world.Start();
    world.Settle();
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
    EXPECT_EQ(BoundPods(world.api), 0);
    EXPECT_EQ(world.journal.size(), 0U);
    EXPECT_EQ(EventsOf(world.api, EventReason::kGangUndone), 1);
  }
}

// Random worlds: arrivals, ends, deletions, crashes and every kind of failed write. (Within one
// process no write arrives after the end of the process that sent it.)
TEST_P(EitherApiTest, ManyGangsUnderRandomFaultsAreWholeOrAbsent) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng(seed);
    World world(Options());
    for (int i = 0; i < 3; ++i) world.api.AddNode(fmt::format("node-{}", i));
    world.fate = [&](int) {
      if (!rng.Chance(1, 6)) return Fate::kNormal;
      constexpr Fate kFates[] = {Fate::kConflict, Fate::kNotDone, Fate::kAnswerLost, Fate::kLate};
      return kFates[rng.Below(GetParam() ? 3 : 4)];
    };
    int pods = 0;
    for (int round = 0; round < 12; ++round) {
      const std::string gang = fmt::format("g{}", round);
      const int members = static_cast<int>(1 + rng.Below(4));
      world.api.AddGang(gang, members);
      for (int i = 0; i < members; ++i) {
        world.api.AddPodWithClaim(fmt::format("p{}", ++pods), gang,
                                  static_cast<int>(1 + rng.Below(8)));
      }
      std::vector<std::string> names;
      for (const auto& [name, pod] : world.api.pods()) names.push_back(name);
      const std::string& victim = names[rng.Below(names.size())];
      switch (rng.Below(4)) {
        case 0:
          world.api.DeletePod(victim);
          break;
        case 1:
          if (!world.api.pods().at(victim).node.empty()) world.api.FinishPod(victim, true);
          break;
        default:
          break;
      }
      world.crash_after = 0;
      if (rng.Chance(1, 3)) {
        world.crash_after = world.writes + static_cast<int>(rng.Below(40));
      }
      if (!world.Settle(static_cast<int>(rng.Below(60)))) {
        world.crash_after = 0;
        world.Start();
      }
    }
    world.crash_after = 0;
    world.fate = [](int) { return Fate::kNormal; };
    ASSERT_TRUE(world.Settle());
    // A member that was deleted by its user leaves its bound gang smaller; nothing else may.
    world.api.CheckDevices();
    EXPECT_THAT(world.api.faults, IsEmpty());
    EXPECT_EQ(world.core().snapshot()->runs_in_flight, 0U);
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace tahoma::controller

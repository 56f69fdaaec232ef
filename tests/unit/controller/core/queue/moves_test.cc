// Defragmentations in a core with all parts: dry runs, moves in their order, aborts, restarts at
// any write, and moves that fail half-way.

#include "controller/core/queue/moves.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "tests/unit/controller/core/queue/moves_world.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two UltraServers, each half taken by a gang that may be moved; "a" loses least.
void HalfFill(MovesWorld& world) {
  for (const char* name : {"a", "b", "c", "d"}) world.Run(name, "4x4x2");
  world.End("b");
  world.End("d");
  world.api.ChangeGang("a", [&](GangFact& gang) { gang.checkpoint = world.Time().wall; });
  world.Settle();
}

void Ask(MovesWorld& world, const std::function<void(DefragmentationSpec&)>& change = {}) {
  world.api.PutDefragmentation("clear", [&](DefragmentationSpec& spec) {
    spec.shape = "4x4x4";
    spec.apply = true;
    if (change) change(spec);
  });
}

const DefragmentationStatus& StatusOf(const MovesWorld& world, const std::string& name = "clear") {
  return world.api.defragmentations().at(name).status;
}

// Makes the pods of gangs anew whose pods have gone, as a controller does, and settles.
void MakePodsAnew(MovesWorld& world, int generation) {
  for (const auto& [name, gang] : world.api.gangs()) {
    const bool any = std::ranges::any_of(world.api.pods(),
                                         [&](const auto& pod) { return pod.second.gang == name; });
    if (!any) world.AddPods(name, generation);
  }
  world.Settle();
}

TEST(MovesTest, ADryRunShowsThePlanAndMovesNobody) {
  MovesWorld world;
  HalfFill(world);
  Ask(world, [](DefragmentationSpec& spec) { spec.apply = false; });
  world.Settle();
  const DefragmentationStatus& status = StatusOf(world);
  EXPECT_EQ(status.phase, DefragmentationPhase::kPlanned);
  EXPECT_EQ(status.place, "us-0 4x4x4+0,0,0");
  ASSERT_EQ(status.moves.size(), 1U);
  EXPECT_EQ(status.moves[0].gang.name, "a");
  EXPECT_THAT(status.moves[0].from, HasSubstr("us-0 4x4x2"));
  EXPECT_THAT(status.moves[0].to, HasSubstr("us-1 4x4x2"));
  EXPECT_EQ(status.lost, status.moves[0].lost);
  EXPECT_EQ(world.DomainOf("a"), "us-0");
  EXPECT_THAT(world.core().snapshot()->promises, IsEmpty());
  EXPECT_EQ(EventsOf(world.api, EventReason::kGangMoved), 0);
}

TEST(MovesTest, AnAppliedPlanMovesTheGangAndKeepsThePlace) {
  MovesWorld world;
  HalfFill(world);
  Ask(world);
  world.Settle();
  EXPECT_EQ(StatusOf(world).phase, DefragmentationPhase::kMoving);
  EXPECT_EQ(StatusOf(world).moves[0].state, MoveState::kMoving);
  EXPECT_EQ(EventsOf(world.api, EventReason::kGangMoved), 1);
  MakePodsAnew(world, 1);
  EXPECT_EQ(world.DomainOf("a"), "us-1");
  const DefragmentationStatus& status = StatusOf(world);
  EXPECT_EQ(status.phase, DefragmentationPhase::kDone);
  EXPECT_EQ(status.moves[0].state, MoveState::kMoved);
  EXPECT_THAT(status.message, HasSubstr("1 of 1 gangs have moved; us-0 4x4x4+0,0,0 is free"));
  // Only a gang of such a size gets the place before the time is over.
  world.Run("small", "4x4");
  EXPECT_EQ(world.DomainOf("small"), "");
  world.Run("large", "4x4x4");
  EXPECT_EQ(world.DomainOf("large"), "us-0");
  world.End("large");
  EXPECT_EQ(world.DomainOf("small"), "");
  world.MoveTo(*status.kept_until);
  EXPECT_EQ(world.DomainOf("small"), "us-0");
  EXPECT_THAT(world.core().snapshot()->promises, IsEmpty());
  world.api.CheckAtRest();
  EXPECT_THAT(world.api.faults, IsEmpty());
}

TEST(MovesTest, NobodyTakesThePlacesWhileAGangMoves) {
  MovesWorld world;
  HalfFill(world);
  Ask(world);
  world.Settle();
  // Older than the next pods of a, of a higher priority, and of a size that would fit.
  for (const char* name : {"other", "more"}) {
    world.AddGangOf(name, "4x4x2");
    world.api.ChangeGang(name, [](GangFact& gang) {
      gang.priority = 1000;
      gang.preempts = false;
      gang.created = WallTime(hours(1));
    });
  }
  world.Settle();
  EXPECT_EQ(world.DomainOf("other"), "");
  MakePodsAnew(world, 1);
  EXPECT_EQ(world.DomainOf("a"), "us-1");
  EXPECT_EQ(world.DomainOf("other"), "");
  EXPECT_EQ(StatusOf(world).phase, DefragmentationPhase::kDone);
}

// Each UltraServer has 32 chips of a gang that stays, 16 of one that may move, and 16 free ones.
void FillThreeQuarters(MovesWorld& world, int ultra_servers) {
  for (int i = 0; i < ultra_servers; ++i) {
    world.Run(fmt::format("stays-{}", i), "4x4x2", false);
    world.Run(fmt::format("moves-{}", i), "4x4");
    world.Run(fmt::format("ends-{}", i), "4x4");
  }
  for (int i = 0; i < ultra_servers; ++i) world.End(fmt::format("ends-{}", i));
}

TEST(MovesTest, NoMoreMovesBeginInAnHourThanMayInAllObjects) {
  MovesWorld world(4);
  FillThreeQuarters(world, 4);
  const auto ask = [](DefragmentationSpec& spec) {
    spec.shape = "4x4x2";
    spec.apply = true;
    spec.moves_per_hour = 1;
  };
  Ask(world, ask);
  world.Settle();
  ASSERT_EQ(StatusOf(world).moves.size(), 1U);
  MakePodsAnew(world, 1);
  EXPECT_EQ(StatusOf(world).phase, DefragmentationPhase::kDone);
  world.api.PutDefragmentation("next", ask);
  world.Settle();
  const WallTime hour_over = *StatusOf(world).moves[0].start + hours(1);
  EXPECT_EQ(StatusOf(world, "next").phase, DefragmentationPhase::kMoving);
  EXPECT_EQ(StatusOf(world, "next").moves.at(0).state, MoveState::kPlanned);
  world.MoveTo(hour_over - minutes(1));
  EXPECT_EQ(StatusOf(world, "next").moves.at(0).state, MoveState::kPlanned);
  world.MoveTo(hour_over);
  EXPECT_EQ(StatusOf(world, "next").moves.at(0).state, MoveState::kMoving);
}

TEST(MovesTest, AnotherObjectWaitsForItsTurn) {
  MovesWorld world;
  HalfFill(world);
  Ask(world);
  world.Settle();
  world.api.PutDefragmentation("later", [](DefragmentationSpec& spec) {
    spec.shape = "4x4x4";
    spec.apply = true;
  });
  world.Settle();
  EXPECT_EQ(StatusOf(world, "later").phase, DefragmentationPhase::kTurn);
  EXPECT_EQ(StatusOf(world, "later").message, "waits for Defragmentation clear");
  MakePodsAnew(world, 1);
  EXPECT_EQ(StatusOf(world).phase, DefragmentationPhase::kDone);
  EXPECT_EQ(StatusOf(world, "later").phase, DefragmentationPhase::kFailed)
      << "the place is kept for whoever asked first";
}

TEST(MovesTest, AnAbortCompletesTheMoveUnderWay) {
  MovesWorld world;
  HalfFill(world);
  Ask(world);
  world.Settle();
  Ask(world, [](DefragmentationSpec& spec) { spec.abort = true; });
  world.Settle();
  EXPECT_EQ(StatusOf(world).phase, DefragmentationPhase::kMoving);
  EXPECT_THAT(StatusOf(world).message, HasSubstr("spec.abort: no other gang moves"));
  for (const char* name : {"other", "more", "last"}) world.Run(name, "4x4x2");
  EXPECT_EQ(world.DomainOf("other"), "us-0") << "the wanted place is nobody's any more";
  EXPECT_EQ(world.DomainOf("more"), "us-0");
  EXPECT_EQ(world.DomainOf("last"), "") << "the place of the move is kept still";
  MakePodsAnew(world, 1);
  EXPECT_EQ(world.DomainOf("a"), "us-1");
  EXPECT_EQ(StatusOf(world).phase, DefragmentationPhase::kAborted);
}

TEST(MovesTest, AnAbortGivesTheFreePlaceBack) {
  MovesWorld world;
  HalfFill(world);
  Ask(world);
  world.Settle();
  MakePodsAnew(world, 1);
  world.Run("small", "4x4");
  EXPECT_EQ(world.DomainOf("small"), "");
  Ask(world, [](DefragmentationSpec& spec) { spec.abort = true; });
  world.Settle();
  EXPECT_EQ(world.DomainOf("small"), "us-0");
  EXPECT_EQ(StatusOf(world).phase, DefragmentationPhase::kDone);
}

TEST(MovesTest, TheEndOfTheObjectIsAnAbort) {
  MovesWorld world;
  HalfFill(world);
  Ask(world);
  world.Settle();
  world.api.RemoveDefragmentation("clear");
  world.Settle();
  for (const char* name : {"other", "more", "last"}) world.Run(name, "4x4x2");
  EXPECT_EQ(world.DomainOf("other"), "us-0");
  EXPECT_EQ(world.DomainOf("more"), "us-0");
  EXPECT_EQ(world.DomainOf("last"), "");
  MakePodsAnew(world, 1);
  EXPECT_EQ(world.DomainOf("a"), "us-1");
  world.api.CheckAtRest();
}

TEST(MovesTest, AGangThatDoesNotComeBackFailsTheObjectAndIsFirstInItsQueue) {
  MovesWorld world;
  HalfFill(world);
  Ask(world);
  world.Settle();
  const WallTime start = *StatusOf(world).moves[0].start;
  world.MoveTo(start + Moves::kMoveMost - minutes(1));
  EXPECT_EQ(StatusOf(world).phase, DefragmentationPhase::kMoving);
  world.MoveTo(start + Moves::kMoveMost + minutes(2));
  EXPECT_EQ(StatusOf(world).phase, DefragmentationPhase::kFailed);
  EXPECT_THAT(StatusOf(world).message,
              HasSubstr("gang default/a was ended for its move and is not bound again"));
  EXPECT_THAT(world.core().snapshot()->promises, IsEmpty());
  // Older gangs wait for the same three places.
  for (const char* name : {"x", "y", "z"}) {
    world.AddGangOf(name, "4x4x2");
    world.api.ChangeGang(name, [](GangFact& gang) { gang.created = WallTime(hours(1)); });
  }
  world.AddPods("a", 1);
  world.Settle();
  EXPECT_NE(world.DomainOf("a"), "");
  const auto placed = [&](const char* name) { return world.DomainOf(name).empty() ? 0 : 1; };
  EXPECT_EQ(placed("x") + placed("y") + placed("z"), 2);
}

TEST(MovesTest, ThePlaceForAWaitingGangIsThatGangs) {
  MovesWorld world;
  HalfFill(world);
  world.Run("big", "4x4x4", false);
  EXPECT_EQ(world.DomainOf("big"), "");
  Ask(world, [](DefragmentationSpec& spec) {
    spec.shape.clear();
    spec.for_gang = GangKey{"default", "big"};
  });
  world.Settle();
  MakePodsAnew(world, 1);
  EXPECT_EQ(world.DomainOf("big"), "us-0");
  EXPECT_EQ(world.DomainOf("a"), "us-1");
  EXPECT_EQ(StatusOf(world).phase, DefragmentationPhase::kDone);
  EXPECT_THAT(world.core().snapshot()->promises, IsEmpty());
}

TEST(MovesTest, WhatCannotBeDoneFailsWithTheCause) {
  MovesWorld world;
  HalfFill(world);
  Ask(world, [](DefragmentationSpec& spec) { spec.slices = 2; });
  world.api.PutDefragmentation("nobody", [](DefragmentationSpec& spec) {
    spec.for_gang = GangKey{"default", "nobody"};
    spec.apply = true;
  });
  world.Settle();
  EXPECT_EQ(StatusOf(world).phase, DefragmentationPhase::kFailed);
  EXPECT_THAT(StatusOf(world).message, HasSubstr("finds no place by moving gangs"));
  EXPECT_EQ(StatusOf(world, "nobody").phase, DefragmentationPhase::kFailed);
  EXPECT_EQ(StatusOf(world, "nobody").message, "gang default/nobody does not wait for hardware");
  EXPECT_EQ(world.DomainOf("a"), "us-0");
}

// Four UltraServers: of the last one two gangs have to move to two of the others, one in an hour.
class MovesInTurnTest : public ::testing::Test {
 protected:
  MovesInTurnTest() : world_(4) {
    for (int i = 0; i < 4; ++i) {
      const bool last = i == 3;
      world_.Run(fmt::format("large-{}", i), "4x4x2", false);
      world_.Run(fmt::format("small-{}", i), "4x4", last);
      world_.Run(fmt::format("other-{}", i), "4x4", last);
    }
    for (const char* name : {"other-0", "other-1", "other-2", "large-3"}) world_.End(name);
    Ask(world_, [](DefragmentationSpec& spec) { spec.moves_per_hour = 1; });
    world_.Settle();
  }
  const GangMove& Move(std::size_t i) const { return StatusOf(world_).moves.at(i); }
  void NextHour() { world_.MoveTo(*Move(0).start + hours(1)); }

  MovesWorld world_;
};

TEST_F(MovesInTurnTest, OneGangMovesAtATime) {
  ASSERT_EQ(StatusOf(world_).moves.size(), 2U) << StatusOf(world_).message;
  EXPECT_EQ(Move(0).state, MoveState::kMoving);
  EXPECT_EQ(Move(1).state, MoveState::kPlanned);
  NextHour();  // the first gang has failed by then
  EXPECT_EQ(Move(0).state, MoveState::kFailed);
  EXPECT_EQ(Move(1).state, MoveState::kCancelled);
  EXPECT_EQ(EventsOf(world_.api, EventReason::kGangMoved), 1);
}

TEST_F(MovesInTurnTest, BothMoveAndThePlaceIsFree) {
  MakePodsAnew(world_, 1);
  EXPECT_EQ(Move(0).state, MoveState::kMoved);
  EXPECT_EQ(Move(1).state, MoveState::kPlanned);
  NextHour();
  EXPECT_EQ(Move(1).state, MoveState::kMoving);
  MakePodsAnew(world_, 2);
  EXPECT_EQ(StatusOf(world_).phase, DefragmentationPhase::kDone);
  EXPECT_EQ(StatusOf(world_).place, "us-3 4x4x4+0,0,0");
  world_.Run("wanted", "4x4x4", false);
  EXPECT_EQ(world_.DomainOf("wanted"), "us-3");
}

TEST_F(MovesInTurnTest, AnAbortLeavesTheSecondGangWhereItIs) {
  MakePodsAnew(world_, 1);
  Ask(world_, [](DefragmentationSpec& spec) { spec.abort = true; });
  world_.Settle();
  EXPECT_EQ(StatusOf(world_).phase, DefragmentationPhase::kAborted);
  EXPECT_EQ(Move(1).state, MoveState::kCancelled);
  EXPECT_THAT(world_.core().snapshot()->promises, IsEmpty());
}

TEST_F(MovesInTurnTest, APlaceThatBreaksBeforeTheMoveIsPlannedAnew) {
  MakePodsAnew(world_, 1);
  const std::string node = Move(1).chips.at(0).node;
  world_.api.ChangeNode(node, [](NodeFacts& facts) { facts.schedulable = false; });
  NextHour();
  ASSERT_EQ(StatusOf(world_).phase, DefragmentationPhase::kMoving) << StatusOf(world_).message;
  EXPECT_NE(Move(1).chips.at(0).node, node);
  world_.MoveTo(*Move(0).start + hours(1) + minutes(1));
  MakePodsAnew(world_, 2);
  EXPECT_EQ(StatusOf(world_).phase, DefragmentationPhase::kDone) << StatusOf(world_).message;
}

TEST_F(MovesInTurnTest, AGangThatEndsByItselfNeedsNotMove) {
  MakePodsAnew(world_, 1);
  world_.End(Move(1).gang.name);
  NextHour();
  EXPECT_EQ(Move(1).state, MoveState::kGone);
  EXPECT_EQ(StatusOf(world_).phase, DefragmentationPhase::kDone);
}

TEST_F(MovesInTurnTest, AGangThatMustStayByNowFailsTheRest) {
  MakePodsAnew(world_, 1);
  const std::string name = Move(1).gang.name;
  world_.api.ChangeGang(name, [](GangFact& gang) { gang.checkpointable = false; });
  NextHour();
  EXPECT_EQ(StatusOf(world_).phase, DefragmentationPhase::kFailed);
  EXPECT_THAT(StatusOf(world_).message,
              HasSubstr("gang default/" + name + " has checkpointable: false, and "));
  EXPECT_EQ(EventsOf(world_.api, EventReason::kGangMoved), 1);
}

TEST_F(MovesInTurnTest, AGangGuardedByABudgetStays) {
  MakePodsAnew(world_, 1);
  const std::string name = Move(1).gang.name;
  world_.api.PutBudget("guard", "batch", 0);
  for (const auto& [pod, fact] : std::map(world_.api.pods())) {
    if (fact.gang != name) continue;
    world_.api.ChangePod(pod, [](PodFact& one) {
      one.labels = {{"app", "batch"}};
      one.running = true;
    });
  }
  NextHour();
  EXPECT_EQ(StatusOf(world_).phase, DefragmentationPhase::kFailed);
  EXPECT_THAT(StatusOf(world_).message,
              HasSubstr("gang default/" + name + " has pods that a PodDisruptionBudget keeps"));
}

// The program dies after any write. Nobody moves twice, and in the end the place is free.
TEST(MovesTest, AfterARestartAtAnyWriteTheMovesGoOn) {
  int steps = 0;
  {
    MovesWorld whole;
    HalfFill(whole);
    const int before = whole.DoneSteps();
    Ask(whole);
    whole.Settle();
    MakePodsAnew(whole, 1);
    ASSERT_EQ(StatusOf(whole).phase, DefragmentationPhase::kDone);
    steps = whole.DoneSteps() - before;
  }
  ASSERT_GT(steps, 10);
  for (int dies = 1; dies <= steps; ++dies) {
    SCOPED_TRACE(dies);
    MovesWorld world;
    HalfFill(world);
    Ask(world);
    world.crash_after = world.DoneSteps() + dies;
    int generation = 1;
    for (int round = 0; round < 3; ++round) {
      if (!world.Settle()) {
        world.crash_after = 0;
        world.Start();
        world.Settle();
      }
      for (const auto& [name, gang] : world.api.gangs()) {
        const bool any = std::ranges::any_of(
            world.api.pods(), [&](const auto& pod) { return pod.second.gang == name; });
        if (!any) world.AddPods(name, generation++);
      }
    }
    world.crash_after = 0;
    world.Settle();
    EXPECT_EQ(StatusOf(world).phase, DefragmentationPhase::kDone) << StatusOf(world).message;
    EXPECT_EQ(world.DomainOf("a"), "us-1");
    EXPECT_EQ(world.DomainOf("c"), "us-1");
    EXPECT_LE(generation, 2) << "a gang was moved twice";
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
  }
}

}  // namespace
}  // namespace tahoma::controller

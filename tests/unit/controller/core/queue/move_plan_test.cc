// Which gangs of a running fleet would move for a place, and which stay and why.

#include "controller/core/queue/move_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "controller/core/facts/asked_gang.h"
#include "controller/core/forecast/move_question.h"
#include "tests/unit/controller/core/queue/moves_world.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const GangSpec> Wanted(const std::string& shape, std::int64_t slices = 1) {
  GangRequest request;
  request.members = 0;
  request.shape = shape;
  request.slices = slices;
  return *GangOfRequest(std::move(request), {"", "wanted"});
}

// Two UltraServers, each half taken.
class MovePlanTest : public ::testing::Test {
 protected:
  MovePlanTest() {
    for (const char* name : {"a", "b", "c", "d"}) world_.Run(name, "4x4x2");
    world_.End("b");
    world_.End("d");
  }
  absl::StatusOr<MovePlan> Ask(const MoveWish& wish) {
    return AskMoves(*world_.core().snapshot(), wish, world_.Time().wall, world_.planner);
  }

  MovesWorld world_;
};

TEST_F(MovePlanTest, TheGangThatLosesLeastMovesBesideTheOther) {
  ASSERT_EQ(world_.DomainOf("a"), "us-0");
  ASSERT_EQ(world_.DomainOf("c"), "us-1");
  world_.api.ChangeGang("a", [&](GangFact& gang) { gang.checkpoint = world_.Time().wall; });
  world_.Settle();
  const auto plan = Ask({.gang = Wanted("4x4x4")});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->moves.size(), 1U);
  EXPECT_EQ(plan->moves[0].run->gang.key.name, "a");
  EXPECT_THAT(plan->moves[0].run->from, HasSubstr("us-0 4x4x2"));
  EXPECT_EQ(plan->moves[0].to.slices.front().domain, "us-1");
  EXPECT_EQ(plan->wanted.ToString(), "us-0 4x4x4+0,0,0");
  EXPECT_EQ(plan->work, plan->moves[0].work);
}

TEST_F(MovePlanTest, AskingChangesNothing) {
  const int writes = world_.writes;
  ASSERT_TRUE(Ask({.gang = Wanted("4x4x4")}).ok());
  world_.Settle();
  EXPECT_EQ(world_.writes, writes);
  EXPECT_EQ(world_.core().snapshot()->promises.size(), 0U);
}

TEST_F(MovePlanTest, EachReasonToStayIsSaid) {
  const auto expect = [&](const std::string& why) {
    const auto plan = Ask({.gang = Wanted("4x4x4")});
    ASSERT_FALSE(plan.ok());
    EXPECT_THAT(plan.status().message(), HasSubstr(why));
    EXPECT_THAT(plan.status().message(), HasSubstr("2 running gangs 2 may not be moved"));
  };
  const auto each = [&](const std::function<void(GangFact&)>& change) {
    for (const char* name : {"a", "c"}) world_.api.ChangeGang(name, change);
    world_.Settle();
  };
  each([](GangFact& gang) { gang.checkpointable = false; });
  expect("has checkpointable: false");
  each([](GangFact& gang) {
    gang.checkpointable = true;
    gang.min_runtime = std::chrono::hours(10);
  });
  expect("has minRuntime until 2023-11-15T08:13");
  each([](GangFact& gang) { gang.min_runtime.reset(); });
  EXPECT_TRUE(Ask({.gang = Wanted("4x4x4")}).ok());
  for (const char* pod : {"a-0-0", "c-0-1"}) {
    world_.api.ChangePod(pod, [](PodFact& fact) { fact.controlled = false; });
  }
  world_.Settle();
  expect("has pods that nobody makes anew");
}

TEST_F(MovePlanTest, AGangThatTellsOfCheckpointsNeedNotBePreemptible) {
  MovesWorld world;
  for (const char* name : {"a", "b", "c", "d"}) world.Run(name, "4x4x2", false);
  world.End("b");
  world.End("d");
  const auto ask = [&] {
    return AskMoves(*world.core().snapshot(), {.gang = Wanted("4x4x4")}, world.Time().wall,
                    world.planner);
  };
  EXPECT_THAT(ask().status().message(),
              HasSubstr("is not preemptible, and has no annotation tahoma.dev/last-checkpoint"));
  world.api.ChangeGang("c", [&](GangFact& gang) { gang.checkpoint = world.Time().wall; });
  world.Settle();
  const auto plan = ask();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->moves.front().run->gang.key.name, "c");
}

TEST_F(MovePlanTest, UltraServersThatAreFreeDoNotCountAsGained) {
  world_.AddUltraServerNodes("us-2");
  world_.Settle();
  const auto place = Ask({.gang = Wanted("4x4x4")});
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(place->moves.size(), 0U);
  const auto gained = Ask({.gang = Wanted("4x4x4"), .gains_ultra_servers = true});
  ASSERT_TRUE(gained.ok()) << gained.status();
  EXPECT_EQ(gained->moves.size(), 1U);
  EXPECT_NE(gained->wanted.slices.front().domain, "us-2");
  EXPECT_NE(gained->moves[0].to.slices.front().domain, "us-2");
}

TEST_F(MovePlanTest, NoMoreGangsMoveThanMay) {
  const auto plan = Ask({.gang = Wanted("4x4x4"), .moves_most = 0});
  EXPECT_THAT(plan.status().message(), HasSubstr("1 gangs would have to move, and at most 0 may"));
}

}  // namespace
}  // namespace tahoma::controller

// maxRuntime: past it a gang is ended, whatever happens to the controller meanwhile.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "controller/core/core.h"
#include "tests/unit/controller/core/block_story.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::HasSubstr;

void AddGangForAnHour(World& world) {
  AddGangOfTwo(world.api);
  world.api.ChangeGang("train", [](GangFact& gang) { gang.max_runtime = hours(1); });
}

TEST(MaxRuntimeTest, AGangIsEndedWhenItsTimeIsOver) {
  World world;
  AddGangForAnHour(world);
  world.Settle();
  const WallTime bound = world.api.pods().at("train-1").scheduled_at.value();
  world.MoveTo(bound + hours(1) - minutes(1));
  EXPECT_EQ(BoundPods(world.api), 2);
  world.MoveTo(bound + hours(1) + std::chrono::seconds(1));
  EXPECT_EQ(BoundPods(world.api), 0);
  EXPECT_EQ(EventsOf(world.api, EventReason::kGangMaxRuntimeOver), 1);
  EXPECT_THAT(world.api.events().back().message, HasSubstr("its maxRuntime of 3600 s"));
  world.api.CheckAtRest();
  EXPECT_THAT(world.api.faults, ::testing::IsEmpty());
}

TEST(MaxRuntimeTest, APodWithoutAGangIsEndedToo) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddPodWithClaim("solo", "", 4);
  world.api.ChangePod("solo", [](PodFact& pod) { pod.max_runtime = minutes(90); });
  world.Settle();
  const WallTime bound = world.api.pods().at("solo").scheduled_at.value();
  world.MoveTo(bound + minutes(89));
  EXPECT_EQ(BoundPods(world.api), 1);
  world.MoveTo(bound + minutes(91));
  EXPECT_EQ(BoundPods(world.api), 0);
}

TEST(MaxRuntimeTest, AGangThatEndsBeforeIsLeftAlone) {
  World world;
  AddGangForAnHour(world);
  world.Settle();
  world.api.FinishPod("train-0", true);
  world.api.FinishPod("train-1", true);
  world.Settle();
  world.MoveTo(world.Time().wall + hours(2));
  EXPECT_EQ(EventsOf(world.api, EventReason::kGangMaxRuntimeOver), 0);
  EXPECT_EQ(world.api.statuses().at("train").phase, GangPhase::kFinished);
}

TEST(MaxRuntimeTest, TheTimeRunsOnThroughRestartsAndFailOver) {
  for (const bool disk : {true, false}) {
    World world;
    AddGangForAnHour(world);
    world.Settle();
    const WallTime bound = world.api.pods().at("train-1").scheduled_at.value();
    world.MoveTo(bound + minutes(50));
    if (!disk) world.journal = MemoryJournal();
    world.Start();
    world.Settle();
    world.MoveTo(bound + minutes(59));
    EXPECT_EQ(BoundPods(world.api), 2) << disk;
    world.MoveTo(bound + minutes(61));
    EXPECT_EQ(BoundPods(world.api), 0) << disk;
  }
}

TEST(MaxRuntimeTest, OneThatWasOverWhileNoControllerRanIsEndedAtTheStart) {
  World world;
  AddGangForAnHour(world);
  world.Settle();
  World other;
  other.api = world.api;
  other.journal = world.journal;
  other.MoveTo(world.Time().wall + hours(5));  // without the gang: nothing is seen before Start
  other.Start();
  other.Settle();
  EXPECT_EQ(BoundPods(other.api), 0);
}

TEST(MaxRuntimeTest, ALongRuntimeIsNoOverflow) {
  World world;
  AddGangOfTwo(world.api);
  world.api.ChangeGang("train", [](GangFact& gang) {
    gang.max_runtime = std::chrono::seconds(std::int64_t{999'999'999} * 3600);
  });
  world.Settle();
  world.MoveTo(world.Time().wall + hours(24 * 365));
  EXPECT_EQ(BoundPods(world.api), 2);
}

// Whatever its maxRuntime, a gang outside of a block is placed on hardware that is kept for one
// only if it has ended before, and in a block only if it ends before the reclaim.
TEST(MaxRuntimeTest, NoGangIsStartedThatCannotFinish) {
  for (int hour = 1; hour < 48; hour += 3) {
    CoreOptions options;
    options.blocks.hosts.one_spare_in = 0;
    LendingStory story(1, options);
    story.Buy("train", {}, 1, 1, 2);
    const Block train = story.block("train");
    const hours runtime(hour);
    story.AddGang("before", 1, [&](GangFact& gang) { gang.max_runtime = runtime; });
    const bool before = !story.HostsOf("before").empty();
    EXPECT_EQ(before, story.now() + runtime <= train.start() - minutes(2)) << hour;
    story.world().MoveTo(train.start());
    EXPECT_TRUE(story.HostsOf("before").empty());
    EXPECT_EQ(StateName(story.block("train").state), "active") << hour;
    story.AddGang("inside", 1, [&](GangFact& gang) {
      gang.max_runtime = runtime;
      gang.block = "train";
    });
    EXPECT_EQ(!story.HostsOf("inside").empty(), story.now() + runtime <= train.reclaim()) << hour;
  }
}

}  // namespace
}  // namespace tahoma::controller

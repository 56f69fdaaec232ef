// Gangs that go on into their owner's next Capacity Block, and those that name that block.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/controller/core/block_story.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// UltraServers without spares, all of which the block "a" has on the first day, and "b" on the
// second.
class NextBlockTest : public ::testing::Test {
 protected:
  static CoreOptions Options() {
    CoreOptions options;
    options.blocks.hosts.one_spare_in = 0;
    options.blocks.share_ultra_servers = true;
    return options;
  }
  void Begin(int hosts, const BlockTerms& terms_of_b = {}, int hosts_of_b = 0) {
    story_ = std::make_unique<LendingStory>(hosts, Options());
    story_->Buy("a", {}, hosts);
    story_->Buy("b", terms_of_b, hosts_of_b == 0 ? hosts : hosts_of_b, 1, 2);
    ASSERT_EQ(story_->block("a").end, story_->block("b").start());
    story_->world().MoveTo(story_->block("a").start());
  }
  void MoveToReclaimOfA() { story_->world().MoveTo(story_->block("a").reclaim()); }
  void MoveToStartOfB() { story_->world().MoveTo(story_->block("b").start()); }
  bool Runs(const std::string& gang) { return !story_->HostsOf(gang).empty(); }
  void TearDown() override { EXPECT_THAT(story_->api().faults, IsEmpty()); }

  std::unique_ptr<LendingStory> story_;
};

TEST_F(NextBlockTest, AGangGoesOnThroughItWhenNoGangNamesIt) {
  Begin(1);
  story_->AddGang("ga", 1, InBlock("a"));
  MoveToReclaimOfA();
  MoveToStartOfB();
  EXPECT_TRUE(Runs("ga"));
  story_->world().MoveTo(story_->block("b").reclaim());
  EXPECT_FALSE(Runs("ga"));
}

TEST_F(NextBlockTest, AGangThatNamesItHasItFromItsStartOn) {
  Begin(1);
  story_->AddGang("ga", 1, InBlock("a"));
  story_->AddGang("gb", 1, InBlock("b"));
  const WallTime reclaim = story_->block("a").reclaim();
  story_->world().MoveTo(reclaim - minutes(1));
  EXPECT_TRUE(Runs("ga"));
  EXPECT_THAT(story_->EventOf("ReclaimIsNear"), HasSubstr("no gang that names that block"));
  story_->world().MoveTo(reclaim);
  EXPECT_FALSE(Runs("ga"));
  EXPECT_THAT(story_->EventOf("GangReclaimed"),
              HasSubstr("ga: Capacity Block default/b begins 2023-11-16T11:30:00Z, and gangs that "
                        "name it have no place beside this one, which does not"));
  MoveToStartOfB();
  EXPECT_THAT(story_->HostsOf("gb"), ElementsAre("us-0"));
}

TEST_F(NextBlockTest, ItsPodsHaveEndedWhenTheBlockBegins) {
  Begin(1);
  story_->AddGang("ga", 1, InBlock("a"));
  story_->AddGang("gb", 1, InBlock("b"));
  std::optional<WallTime> by;
  story_->world().on_writes = [&](const std::vector<ApiWrite>& writes) {
    for (const ApiWrite& write : writes) {
      if (const auto* deletion = std::get_if<PodDeletion>(&write.what)) by = deletion->by;
    }
  };
  MoveToReclaimOfA();
  EXPECT_EQ(by, story_->block("b").start());
}

TEST_F(NextBlockTest, AGangWithRoomBesideItGoesOn) {
  Begin(2);
  story_->AddGang("ga", 1, InBlock("a"));
  story_->AddGang("gb", 1, InBlock("b"));
  MoveToReclaimOfA();
  MoveToStartOfB();
  EXPECT_TRUE(Runs("ga"));
  EXPECT_TRUE(Runs("gb"));
}

TEST_F(NextBlockTest, GangsThatNameItAreLookedAtTogether) {
  Begin(2);
  story_->AddGang("ga", 1, InBlock("a"));
  story_->AddGang("gb", 1, InBlock("b"));
  story_->AddGang("gc", 1, InBlock("b"));
  MoveToReclaimOfA();
  EXPECT_FALSE(Runs("ga")) << "each of them would fit beside it, but not both";
  MoveToStartOfB();
  EXPECT_TRUE(Runs("gb"));
  EXPECT_TRUE(Runs("gc"));
}

TEST_F(NextBlockTest, NoMoreGangsEndThanMust) {
  Begin(3);
  for (const char* gang : {"ga", "gc", "gd"}) story_->AddGang(gang, 1, InBlock("a"));
  story_->AddGang("gb", 1, InBlock("b"));
  MoveToReclaimOfA();
  EXPECT_EQ(Runs("ga") + Runs("gc") + Runs("gd"), 2);
  MoveToStartOfB();
  EXPECT_TRUE(Runs("gb"));
  EXPECT_EQ(Runs("ga") + Runs("gc") + Runs("gd"), 2);
}

TEST_F(NextBlockTest, AGangThatCannotRunInItEndsNobody) {
  Begin(1);
  story_->AddGang("ga", 1, InBlock("a"));
  story_->AddGang("large", 2, InBlock("b"));
  story_->AddGang("long", 1, [](GangFact& gang) {
    gang.block = "b";
    gang.max_runtime = hours(30);
  });
  story_->api().AddGang("incomplete", 4);
  story_->api().ChangeGang("incomplete", InBlock("b"));
  MoveToReclaimOfA();
  MoveToStartOfB();
  EXPECT_TRUE(Runs("ga"));
  EXPECT_THAT(story_->EventOf("GangReclaimed"), IsEmpty());
}

TEST_F(NextBlockTest, AGangThatComesLateEndsTheOneThatWentOn) {
  for (const bool begun : {false, true}) {
    Begin(1);
    story_->AddGang("ga", 1, InBlock("a"));
    MoveToReclaimOfA();
    if (begun) MoveToStartOfB();
    EXPECT_TRUE(Runs("ga")) << begun;
    story_->AddGang("gb", 1, InBlock("b"));
    EXPECT_FALSE(Runs("ga")) << begun;
    EXPECT_THAT(story_->EventOf("GangReclaimed"), HasSubstr("ga: ")) << begun;
    if (!begun) MoveToStartOfB();
    EXPECT_TRUE(Runs("gb")) << begun;
  }
  EXPECT_THAT(story_->EventOf("GangReclaimed"),
              HasSubstr("gang default/gb names Capacity Block " + story_->block("b").reservation));
}

TEST_F(NextBlockTest, AGangOfTheBlockItselfIsNotEndedForAnother) {
  Begin(1);
  story_->AddGang("gb", 1, InBlock("b"));
  MoveToReclaimOfA();
  MoveToStartOfB();
  story_->AddGang("late", 1, InBlock("b"));
  EXPECT_TRUE(Runs("gb"));
  EXPECT_FALSE(Runs("late"));
}

TEST_F(NextBlockTest, OnlyWhatTheSmallerBlockHasGoesOn) {
  Begin(2, {}, 1);
  story_->AddGang("ga", 1, InBlock("a"));
  story_->AddGang("gc", 1, InBlock("a"));
  MoveToReclaimOfA();
  EXPECT_EQ(Runs("ga") + Runs("gc"), 1);
  story_->AddGang("gb", 1, InBlock("b"));
  EXPECT_EQ(Runs("ga") + Runs("gc"), 0);
  MoveToStartOfB();
  EXPECT_TRUE(Runs("gb"));
}

TEST_F(NextBlockTest, BorrowersEndBeforeGangsThatWentOn) {
  Begin(2, {.lend_idle = true});
  story_->AddGang("ga", 1, InBlock("a"));
  MoveToReclaimOfA();
  MoveToStartOfB();
  story_->AddGang("guest", 1, [](GangFact& gang) { gang.preemptible = true; });
  EXPECT_TRUE(Runs("guest"));
  story_->AddGang("gb", 1, InBlock("b"));
  EXPECT_TRUE(Runs("ga"));
  EXPECT_FALSE(Runs("guest"));
  EXPECT_TRUE(Runs("gb"));
  story_->AddGang("gc", 1, InBlock("b"));
  EXPECT_FALSE(Runs("ga"));
  EXPECT_TRUE(Runs("gc"));
}

TEST_F(NextBlockTest, AnotherControllerEndsItAsWell) {
  for (const bool disk : {true, false}) {
    Begin(1);
    story_->AddGang("ga", 1, InBlock("a"));
    MoveToReclaimOfA();
    disk ? story_->Restart() : story_->LoseTheDisk();
    EXPECT_TRUE(Runs("ga")) << disk;
    story_->AddGang("gb", 1, InBlock("b"));
    EXPECT_FALSE(Runs("ga")) << disk;
    disk ? story_->Restart() : story_->LoseTheDisk();
    MoveToStartOfB();
    EXPECT_TRUE(Runs("gb")) << disk;
  }
}

// Else the next block, which does not let them in, could not begin.
TEST_F(NextBlockTest, GangsOfOtherNamespacesDoNotGoOn) {
  story_ = std::make_unique<LendingStory>(1, Options());
  story_->Buy("a", {.access = {"default"}}, 1, 1, 1, "team");
  story_->Buy("b", {}, 1, 1, 2, "team");
  story_->world().MoveTo(story_->block("a", "team").start());
  story_->AddGang("ga", 1, InBlock("team/a"));
  ASSERT_TRUE(Runs("ga"));
  story_->world().MoveTo(story_->block("a", "team").reclaim());
  EXPECT_FALSE(Runs("ga"));
  EXPECT_THAT(story_->EventOf("GangReclaimed"), HasSubstr("Capacity Block team/a ends"));
  story_->world().MoveTo(story_->block("b", "team").start());
  EXPECT_EQ(StateName(story_->block("b", "team").state), "active");
}

}  // namespace
}  // namespace tahoma::controller

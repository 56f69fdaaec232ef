// Preemptible gangs on borrowed time: before a block begins, on what a block does not use, and out
// again in time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>

#include "tests/unit/controller/core/block_story.h"

namespace tahoma::controller {
namespace {

using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

void Preemptible(GangFact& gang) { gang.preemptible = true; }
void Usual(GangFact& /*gang*/) {}
CoreOptions NoSpares() {
  CoreOptions options;
  options.blocks.hosts.one_spare_in = 0;
  return options;
}

TEST(LendingTest, APreemptibleGangUsesWhatIsKeptUntilShortlyBeforeTheStart) {
  LendingStory story(1, NoSpares());
  story.Buy("train", {}, 1, 1, 2);
  story.AddGang("usual", 1, Usual);
  EXPECT_THAT(story.HostsOf("usual"), IsEmpty());
  story.AddGang("guest", 1, Preemptible);
  EXPECT_THAT(story.HostsOf("guest"), ElementsAre("us-0"));
  const WallTime start = story.block("train").start();
  story.world().MoveTo(start - kLoanLead - minutes(1));
  EXPECT_THAT(story.HostsOf("guest"), ElementsAre("us-0"));
  story.world().MoveTo(start - kLoanLead);
  EXPECT_THAT(story.HostsOf("guest"), IsEmpty());
  EXPECT_THAT(story.EventOf("GangPreempted"),
              HasSubstr("guest: us-0 is kept for a Capacity Block that begins 2023-11-16T11:30"));
  EXPECT_EQ(story.ReasonOf("guest"), "WaitingForPods");
  story.world().MoveTo(start);
  EXPECT_EQ(StateName(story.block("train").state), "active");
  EXPECT_EQ(story.block("train").trouble, "");
  EXPECT_THAT(story.api().faults, IsEmpty());
}

TEST(LendingTest, APodWithALongGraceLeavesEarlier) {
  LendingStory story(1, NoSpares());
  story.Buy("train", {}, 1, 1, 2);
  story.api().AddGang("guest", 1);
  story.api().ChangeGang("guest", Preemptible);
  story.api().AddPodWithClaim("guest-0", "guest", 16);
  story.api().ChangePod("guest-0", [](PodFact& pod) { pod.grace_seconds = 3600; });
  story.world().Settle();
  ASSERT_THAT(story.HostsOf("guest"), SizeIs(1));
  const WallTime start = story.block("train").start();
  story.world().MoveTo(start - minutes(61));
  EXPECT_THAT(story.HostsOf("guest"), SizeIs(1));
  story.world().MoveTo(start - minutes(60));
  EXPECT_THAT(story.HostsOf("guest"), IsEmpty());
}

TEST(LendingTest, NothingIsLentThatWouldBeTakenBackAtOnce) {
  LendingStory story(1, NoSpares());
  story.Buy("train", {.lend_idle = true}, 1, 1, 2);
  const Block train = story.block("train");
  story.world().MoveTo(train.start() - kLoanLead - kLoanLeast + minutes(1));
  story.AddGang("guest", 1, Preemptible);
  EXPECT_THAT(story.HostsOf("guest"), IsEmpty());
  story.world().MoveTo(train.start());
  story.world().MoveTo(train.reclaim() - kLoanLeast + minutes(1));
  EXPECT_THAT(story.HostsOf("guest"), ElementsAre("us-0")) << "it was lent when the block began";
  story.AddGang("late", 1, Preemptible);
  EXPECT_THAT(story.HostsOf("late"), IsEmpty());
}

TEST(LendingTest, ABlockLendsWhatItDoesNotUseUntilItsReclaim) {
  LendingStory story(2, NoSpares());
  story.Buy("train", {.lend_idle = true}, 2);
  const Block train = story.block("train");
  story.world().MoveTo(train.start());
  story.AddGang("usual", 1, Usual);
  story.AddGang("guest", 1, Preemptible);
  EXPECT_THAT(story.HostsOf("usual"), IsEmpty());
  EXPECT_THAT(story.HostsOf("guest"), SizeIs(1));
  story.AddGang("own", 1, InBlock("train"));
  EXPECT_THAT(story.HostsOf("own"), SizeIs(1)) << "the idle host comes first";
  EXPECT_THAT(story.HostsOf("guest"), SizeIs(1));
  story.world().MoveTo(train.reclaim());
  EXPECT_THAT(story.HostsOf("guest"), IsEmpty());
  EXPECT_THAT(story.HostsOf("own"), IsEmpty());
  EXPECT_EQ(EventsOf(story.api(), EventReason::kGangReclaimed), 2);
}

TEST(LendingTest, ABlockThatDoesNotLendLetsNobodyIn) {
  LendingStory story(1, NoSpares());
  story.Buy("train", {});
  story.world().MoveTo(story.block("train").start());
  story.AddGang("guest", 1, Preemptible);
  EXPECT_THAT(story.HostsOf("guest"), IsEmpty());
  story.api().ChangeBlock("train", [](BlockFact& block) { block.order.terms.lend_idle = true; });
  story.world().Settle();
  EXPECT_THAT(story.HostsOf("guest"), ElementsAre("us-0"));
  story.api().ChangeBlock("train", [](BlockFact& block) { block.order.terms.lend_idle = false; });
  story.world().Settle();
  EXPECT_THAT(story.HostsOf("guest"), IsEmpty());
  EXPECT_THAT(story.EventOf("GangPreempted"), HasSubstr("which does not lend it"));
}

TEST(LendingTest, AGangOfTheBlockGetsItsHardwareBackFromAsFewAsCanBe) {
  LendingStory story(3, NoSpares());
  story.Buy("train", {.lend_idle = true}, 3);
  const Block train = story.block("train");
  story.world().MoveTo(train.start());
  for (const char* guest : {"a", "b", "c"}) {
    story.AddGang(guest, 1, Preemptible);
    story.world().MoveTo(story.now() + minutes(30));
  }
  // "c" has worked least, "a" most.
  story.AddGang("own", 1, InBlock("train"));
  EXPECT_THAT(story.HostsOf("own"), SizeIs(1));
  EXPECT_THAT(story.HostsOf("a"), SizeIs(1));
  EXPECT_THAT(story.HostsOf("b"), SizeIs(1));
  EXPECT_THAT(story.HostsOf("c"), IsEmpty());
  EXPECT_THAT(
      story.EventOf("GangPreempted"),
      HasSubstr("c: gang default/own needs hardware of its Capacity Block " + train.reservation));
  story.AddGang("more", 2, InBlock("train"));
  EXPECT_THAT(story.HostsOf("more"), SizeIs(2));
  EXPECT_THAT(story.api().faults, IsEmpty());
}

TEST(LendingTest, AGangThatWouldNotFitAnywayEndsNobody) {
  LendingStory story(2, NoSpares());
  story.Buy("train", {.lend_idle = true}, 2);
  story.world().MoveTo(story.block("train").start());
  story.AddGang("own", 1, InBlock("train"));
  story.AddGang("guest", 1, Preemptible);
  story.AddGang("big", 2, InBlock("train"));
  EXPECT_THAT(story.HostsOf("big"), IsEmpty());
  EXPECT_THAT(story.HostsOf("guest"), SizeIs(1));
}

TEST(LendingTest, WhatAGangOfTheBlockWaitsForIsNotLentAgain) {
  LendingStory story(2, NoSpares());
  story.Buy("train", {.lend_idle = true}, 2);
  story.world().MoveTo(story.block("train").start());
  story.AddGang("a", 1, Preemptible);
  story.AddGang("b", 1, Preemptible);
  story.AddGang("own", 2, InBlock("train"));
  // Their controllers make the pods of both anew, and one more waits.
  story.AddPods("a", 1);
  story.AddPods("b", 1);
  story.AddGang("c", 1, Preemptible);
  EXPECT_THAT(story.HostsOf("own"), SizeIs(2));
  EXPECT_EQ(EventsOf(story.api(), EventReason::kGangPreempted), 2) << "each was ended once";
  for (int i = 0; i < 8; ++i) story.api().FinishPod("own-" + std::to_string(i), true);
  story.world().MoveTo(story.now() + minutes(1));
  EXPECT_THAT(story.HostsOf("a"), SizeIs(1));
  EXPECT_THAT(story.HostsOf("b"), SizeIs(1));
}

TEST(LendingTest, LendingGoesOnWhenTheGangThatWantedTheHardwareIsGone) {
  LendingStory story(2, NoSpares());
  story.Buy("train", {.lend_idle = true}, 2);
  story.world().MoveTo(story.block("train").start());
  story.AddGang("a", 1, Preemptible);
  story.api().AddGang("own", 8);
  story.api().ChangeGang("own", [](GangFact& gang) {
    gang.block = "train";
    gang.chips = 128;
  });
  for (int i = 0; i < 8; ++i) {
    story.api().AddPodWithClaim("own-" + std::to_string(i), "own", 16);
  }
  story.world().Settle(20, false);  // the pods of "a" take their time
  EXPECT_THAT(story.HostsOf("own"), IsEmpty());
  story.api().DeletePod("own-0");
  story.AddGang("b", 1, Preemptible);
  EXPECT_THAT(story.HostsOf("b"), SizeIs(1));
}

TEST(LendingTest, ALoanThatEndsLateDelaysTheDeliveryAndTheBookSaysSo) {
  LendingStory story(1, NoSpares());
  story.Buy("train", {}, 1, 1, 2);
  story.AddGang("guest", 1, Preemptible);
  const WallTime start = story.block("train").start();
  story.world().MoveTo(start - kLoanLead - minutes(1));
  // Nothing ends pods any more: their node is cut off.
  while (story.now() < start + minutes(1)) story.world().Settle(50, false);
  EXPECT_EQ(StateName(story.block("train").state), "scheduled");
  EXPECT_EQ(story.block("train").trouble,
            "0 of 1 hosts are free and healthy; 1 more is lent to "
            "preemptible gangs, which are being ended");
  EXPECT_THAT(story.EventOf("CapacityBlockUndelivered"), HasSubstr("lent to preemptible gangs"));
  story.world().Settle();
  EXPECT_EQ(StateName(story.block("train").state), "active");
  EXPECT_EQ(story.block("train").trouble, "");
}

TEST(LendingTest, LoansEndInTimeAfterARestartAndAFailOver) {
  for (const bool disk : {true, false}) {
    LendingStory story(1, NoSpares());
    story.Buy("train", {}, 1, 1, 2);
    story.AddGang("guest", 1, Preemptible);
    disk ? story.Restart() : story.LoseTheDisk();
    EXPECT_THAT(story.HostsOf("guest"), SizeIs(1)) << disk;
    const WallTime start = story.block("train").start();
    story.world().MoveTo(start - kLoanLead);
    EXPECT_THAT(story.HostsOf("guest"), IsEmpty()) << disk;
    story.world().MoveTo(start);
    EXPECT_EQ(StateName(story.block("train").state), "active");
  }
}

TEST(LendingTest, BorrowedHardwareIsForSale) {
  LendingStory story(1, NoSpares());
  story.AddGang("guest", 1, Preemptible);
  ASSERT_THAT(story.HostsOf("guest"), SizeIs(1));
  story.Buy("train", {}, 1, 1, 2);
  story.world().MoveTo(story.block("train").start());
  EXPECT_EQ(StateName(story.block("train").state), "active");
}

TEST(LendingTest, HardwareThatTakesThePlaceOfWhatFailedIsFreedOfLoans) {
  LendingStory story(2, NoSpares());
  story.Buy("train", {.replace = ReplacePolicy::kAutomatic});
  story.world().MoveTo(story.block("train").start());
  story.AddGang("guest", 1, Preemptible);
  const std::string first = story.block("train").hosts.front();
  ASSERT_THAT(story.HostsOf("guest"), SizeIs(1));
  for (int z = 0; z < 4; ++z) story.api().RemoveNode(first + "-n" + std::to_string(z));
  story.world().Settle();
  EXPECT_THAT(story.block("train").hosts, ElementsAre(first == "us-0" ? "us-1" : "us-0"));
  EXPECT_THAT(story.HostsOf("guest"), IsEmpty());
}

TEST(LendingTest, AMagneticBlockDrawsGangsThatFitInIt) {
  LendingStory story(2, NoSpares());
  story.Buy("train", {.magnetic = true});
  story.world().MoveTo(story.block("train").start());
  const std::string host = story.block("train").hosts.front();
  story.AddGang("first", 1, Usual);
  EXPECT_THAT(story.HostsOf("first"), ElementsAre(host));
  story.AddGang("second", 1, Usual);  // no room there
  EXPECT_THAT(story.HostsOf("second"), ElementsAre(host == "us-0" ? "us-1" : "us-0"));
  story.world().MoveTo(story.block("train").reclaim());
  EXPECT_THAT(story.HostsOf("first"), IsEmpty());
  EXPECT_THAT(story.HostsOf("second"), SizeIs(1));
  EXPECT_THAT(story.EventOf("GangReclaimed"), HasSubstr("first"));
}

TEST(LendingTest, AGangThatWaitsIsDrawnWhenTheBlockBegins) {
  LendingStory story(1, NoSpares());
  story.Buy("train", {.magnetic = true});
  story.AddGang("long", 1, [](GangFact& gang) { gang.max_runtime = std::chrono::hours(30); });
  story.AddGang("first", 1, Usual);
  EXPECT_THAT(story.HostsOf("first"), IsEmpty());
  story.world().MoveTo(story.block("train").start());
  EXPECT_THAT(story.HostsOf("first"), SizeIs(1));
  EXPECT_THAT(story.HostsOf("long"), IsEmpty()) << "it would not end in time";
}

}  // namespace
}  // namespace tahoma::controller

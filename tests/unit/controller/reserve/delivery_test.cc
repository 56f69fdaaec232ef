// The hosts that a block gets in spite of trouble: hosts that fail, stay in use, move or go, and
// clocks that are late or wrong.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "controller/reserve/book.h"
#include "controller/reserve/refusal.h"
#include "tests/unit/controller/reserve/block_world.h"

namespace tahoma::controller {
namespace {

using Names = std::vector<std::string>;

TEST(DeliveryTest, AHostThatIsStillInUseIsPassedOverForOneThatIsFree) {
  BlockWorld world({.hosts = 2});
  const auto block = world.Buy({.days = 1});
  world.host(0).healthy = world.host(1).healthy = false;
  world.Tell(0);
  world.SetHealthy(1, false);
  world.MoveTo(block->start() + kMinute);
  ASSERT_EQ(world.StateOf(*block), "scheduled");
  // Both are repaired at once; on the first a gang still runs that should have ended.
  world.host(0) = {.name = world.NameOf(0),
                   .pool = world.host(0).pool,
                   .healthy = true,
                   .held = true,
                   .held_by = "team-b",
                   .held_until = block->start()};
  world.Tell(0);
  world.SetHealthy(1, true);
  EXPECT_EQ(world.StateOf(*block), "active");
  EXPECT_EQ(world.Now(*block)->hosts, Names{"us-01"});
}

TEST(DeliveryTest, NothingIsSaidAgainWhileABlockWaitsForTheSameHost) {
  BlockWorld world({.hosts = 2});
  const auto block = world.Buy({.days = 1, .count = 2});
  world.SetHeld(0, "team-b", block->start() - kMinute);
  world.MoveTo(block->start());
  ASSERT_EQ(world.Now(*block)->trouble, "1 of 2 hosts are free and healthy");
  world.NewsOf(*block);
  for (int minutes = 1; minutes < 5; ++minutes) {
    world.SetHeld(0, "team-b", block->start() + kMinute * minutes);
  }
  EXPECT_EQ(world.NewsOf(*block), "");
}

// openpbs/openpbs#1 in another form: hosts freed at a moment are handed on at that moment, even
// when the clock is set past the time at which the next block would give up.
TEST(DeliveryTest, ABlockThatWaitsGetsAHostWhenAnotherEndsHoweverFarTheClockIsSetForward) {
  BlockWorld world({.hosts = 2});
  const auto until_today = world.Buy({.days = 1, .at_once = true});
  world.MoveBy(kMinute * 110);
  const auto at_once = world.Buy({.days = 1, .at_once = true});
  ASSERT_LT(at_once->start(), until_today->end);
  world.MoveTo(at_once->start() - kMinute);
  world.SetHealthy(1, false);
  world.MoveTo(at_once->start());
  ASSERT_EQ(world.StateOf(*at_once), "scheduled");
  world.MoveTo(until_today->end + kHour * 4);
  EXPECT_EQ(world.StateOf(*at_once), "active");
  EXPECT_EQ(world.Now(*at_once)->delivered, until_today->end);
}

TEST(DeliveryTest, ABlockLooksForHardwareALastTimeBeforeItFails) {
  BlockWorld world({.hosts = 1});
  const auto block = world.Buy({.days = 1});
  world.SetHealthy(0, false);
  world.MoveTo(block->start() + kMinute * 30);
  world.host(0).healthy = true;
  world.Tell(0);
  world.MoveTo(block->start() + kHour * 2);
  EXPECT_EQ(world.StateOf(*block), "active");
}

TEST(DeliveryTest, ABlockIsNotDeliveredWhenItsHardwareWouldBeTakenBack) {
  BlockWorld world({.hosts = 1});
  world.MoveBy(kMinute * 30);
  const auto block = world.Buy({.days = 1, .at_once = true});
  ASSERT_EQ(block->reclaim() - block->start(), kMinute * 30);
  world.SetHealthy(0, false);
  world.MoveTo(block->reclaim());
  EXPECT_EQ(world.StateOf(*block), "failed");
}

TEST(DeliveryTest, ABlockThatIsDeliveredLateIsWarnedAtOnce) {
  BlockWorld world({.hosts = 1});
  world.MoveBy(kMinute * 30);
  const auto block = world.Buy({.days = 1, .at_once = true});
  world.SetHealthy(0, false);
  world.MoveTo(block->reclaim() - kMinute * 5);
  world.SetHealthy(0, true);
  EXPECT_EQ(world.StateOf(*block), "active");
  EXPECT_TRUE(world.Now(*block)->warned);
  EXPECT_EQ(world.book().wake(), block->reclaim());
}

// By the counts there is room for all three: no block may sit on an idle host that a later purchase
// with an earlier start needs.
TEST(DeliveryTest, ABlockThatIsBoughtAtTheLastMinuteFindsItsHost) {
  BlockWorld world({.hosts = 2});
  const auto until_today = world.Buy({.days = 1, .at_once = true});
  const auto tomorrow = world.Buy({.days = 1, .owner = "team-b"});
  world.MoveTo(tomorrow->start() - kMinute * 31);
  const Offering offering = world.Find({.days = 1, .at_once = true});
  world.MoveTo(tomorrow->start() - kMinute * 7);
  ASSERT_FALSE(world.Now(*tomorrow)->hosts.empty());
  const auto at_once = world.TryToBuy(offering, {.owner = "team-c"});
  ASSERT_TRUE(at_once.ok()) << at_once.status();
  world.MoveTo(offering.start);
  EXPECT_EQ(world.StateOf(**at_once), "active");
  world.MoveTo(tomorrow->start());
  EXPECT_EQ(world.StateOf(*tomorrow), "active");
}

TEST(DeliveryTest, ABlockIsBoundNoEarlierThanItIsPaid) {
  BlockWorld::Setup setup{.hosts = 1};
  setup.book.payment.delay = kMinute * 24;
  BlockWorld world(setup);
  const auto block = world.Buy({.days = 1, .at_once = true});
  world.MoveTo(block->start());
  EXPECT_EQ(world.Now(*block)->bound, block->start() - kMinute * 6);
}

TEST(DeliveryTest, AHostThatMovesToAnotherCellIsNoLongerTheBlocks) {
  BlockWorld world({.hosts = 4, .cells = 2});
  const auto block = world.Buy({.days = 1});
  world.MoveTo(block->start() - kMinute);
  ASSERT_EQ(world.Now(*block)->hosts, Names{"us-00"});
  world.host(0).pool.cell = "nn-1";
  world.Tell(0);
  world.MoveTo(block->start());
  EXPECT_EQ(world.Now(*block)->hosts, Names{"us-02"});
  world.host(2).pool.cell = "nn-1";
  world.Tell(2);
  world.MoveBy(kMinute);
  EXPECT_EQ(world.Now(*block)->trouble, "1 of 1 hosts failed: us-02");
}

TEST(DeliveryTest, AHostIsReplacedByOneOfItsOwnCell) {
  BlockWorld world({.hosts = 6, .cells = 2});
  const auto block = world.Buy(
      {.days = 1, .count = 4, .any_cell = true, .terms = {.replace = ReplacePolicy::kAutomatic}});
  world.MoveTo(block->start());
  const Names hosts = world.Now(*block)->hosts;
  ASSERT_EQ(std::count(hosts.begin(), hosts.end(), "us-01"), 1);
  ASSERT_EQ(std::count(hosts.begin(), hosts.end(), "us-00"), 1);
  world.SetHealthy(1, false);  // the block has all hosts of the cell already
  world.SetHealthy(0, false);
  EXPECT_EQ(world.Now(*block)->hosts, (Names{"us-03", "us-05", "us-02", "us-01"}));
  world.SetHealthy(1, true);
  EXPECT_EQ(world.Now(*block)->trouble, "");
}

// A story of StoryTest, made small: two hosts had moved, and a single new host replaced both.
TEST(DeliveryTest, AHostThatMovedIsTheBlocksUntilAnotherTakesItsPlace) {
  BlockWorld world({.hosts = 8, .cells = 2});
  const auto block =
      world.Buy({.days = 1, .count = 2, .terms = {.replace = ReplacePolicy::kAutomatic}});
  world.MoveTo(block->start());
  ASSERT_EQ(world.Now(*block)->hosts, (Names{"us-00", "us-02"}));
  world.SetHealthy(4, false);
  world.SetHealthy(6, false);
  for (const int host : {0, 2}) {
    world.host(host).pool.cell = "nn-1";
    world.Tell(host);
    world.MoveBy(kMinute);
  }
  EXPECT_EQ(world.Now(*block)->hosts, (Names{"us-00", "us-02"}));
  EXPECT_EQ(world.StateOf(*block), "unavailable");
  world.SetHealthy(4, true);
  EXPECT_EQ(world.Now(*block)->hosts, (Names{"us-04", "us-00"}));
  EXPECT_EQ(world.Now(*block)->trouble, "1 of 2 hosts failed: us-00");
  world.SetHealthy(6, true);
  EXPECT_EQ(world.Now(*block)->hosts, (Names{"us-04", "us-06"}));
  EXPECT_EQ(world.Now(*block)->trouble, "");
}

TEST(DeliveryTest, AHostThatLeavesTheFleetIsReplacedOrMissed) {
  BlockWorld world({.hosts = 2});
  const auto block = world.Buy({.days = 1});
  world.MoveTo(block->start());
  world.book().RemoveHost("us-00", world.now());
  world.MoveBy(kMinute);
  EXPECT_EQ(world.Now(*block)->trouble, "1 of 1 hosts failed: us-00");
  EXPECT_EQ(world.StateOf(*block), "unavailable");
  world.book().SetTerms(*world.Now(*block), {.replace = ReplacePolicy::kAutomatic}, {},
                        world.now());
  world.MoveBy(kMinute);
  EXPECT_EQ(world.Now(*block)->hosts, Names{"us-01"});
  EXPECT_EQ(world.StateOf(*block), "active");
}

TEST(DeliveryTest, AHostThatIsGoneAfterARestartIsMissed) {
  BlockWorld world({.hosts = 2});
  const auto block = world.Buy({.days = 1});
  world.MoveTo(block->start());
  BlockBook book({}, world.now());
  ASSERT_TRUE(book.Restore(*world.Now(*block)).ok());
  book.PutHost(world.host(1), world.now());
  book.Advance(world.now());
  EXPECT_EQ(book.Find(block->reservation)->trouble, "1 of 1 hosts failed: us-00");
}

TEST(DeliveryTest, AHostThatWasChosenAtThePurchaseAndFailsIsReplacedOnceTheBlockIsPaid) {
  BlockWorld::Setup setup{.hosts = 2};
  setup.book.payment.delay = kHour;
  BlockWorld world(setup);
  const auto block =
      world.Buy({.days = 1, .start_in_days = 5, .terms = {.binding = BindingMode::kAtPurchase}});
  ASSERT_EQ(block->hosts, Names{"us-00"});
  world.SetHealthy(0, false);
  world.MoveBy(kHour);
  EXPECT_EQ(world.Now(*block)->hosts, Names{"us-01"});
}

TEST(DeliveryTest, ABlockThatFailsWaitsForNoPayment) {
  BlockWorld::Setup setup{.hosts = 1};
  setup.book.payment.delay = kHour * 6;
  BlockWorld world(setup);
  const auto block = world.Buy({.days = 2, .start_in_days = 2});
  world.MoveTo(block->start() - kHour);
  ASSERT_TRUE(world.TryToExtend(*block, 1).ok());
  world.SetHealthy(0, false);
  world.MoveTo(block->start() + kHour * 2);
  EXPECT_EQ(world.StateOf(*block), "failed");
  EXPECT_EQ(world.Now(*block)->pending_extension(), nullptr);
  EXPECT_EQ(world.Now(*block)->fee(), block->fee());
}

TEST(DeliveryTest, AClockThatIsSetBackWhileTheControllerIsDownChangesNothing) {
  BlockWorld world({.hosts = 2});
  world.MoveBy(kDay * 60);
  const auto block = world.Buy({.days = 182, .start_in_days = 50});
  const Offering offering = world.Find({.days = 1});
  world.Restart(world.now() - kDay * 60);
  EXPECT_EQ(world.StateOf(*block), "scheduled");
  EXPECT_TRUE(world.TryToBuy(offering, {}).ok());
  const auto wake = world.book().wake();
  ASSERT_TRUE(wake.has_value());
  EXPECT_GT(*wake, block->created);
}

}  // namespace
}  // namespace tahoma::controller

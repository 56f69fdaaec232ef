// Defects of other schedulers that gave hardware to two owners, or to nobody, each as a test here.
// The numbers are issues of github.com/openpbs/openpbs. Slurm deleted reservations of users that
// could not be looked up: block_leaders_test has ABlockIsKeptWhileItsOwnerCannotBeFound.

#include <gtest/gtest.h>

#include "controller/reserve/book.h"
#include "controller/reserve/refusal.h"
#include "tests/unit/controller/reserve/block_world.h"

namespace tahoma::controller {
namespace {

// #2398: two reservations confirmed in the same cycle got the same nodes.
TEST(PeersTest, TwoPurchasesInTheSameMillisecondGetTheLastCapacityOnce) {
  BlockWorld world({.hosts = 2});
  const std::string id = OfferingId(world.Find({.days = 1, .count = 1}));
  const auto buy = [&](const char* owner) {
    PurchaseOrder order;
    order.offering_id = id;
    order.key.ns = owner;
    return world.book().Purchase(order, world.now());
  };
  // No time passes between the purchases, and the book is not advanced.
  const auto first = buy("team-a"), second = buy("team-a"), third = buy("team-b");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE((*first)->reservation, (*second)->reservation);
  EXPECT_EQ(Ec2CodeOf(third.status()), "InvalidCapacityBlockOfferingIdExpired");
  world.MoveTo((*first)->start());
  EXPECT_NE(world.Now(**first)->hosts, world.Now(**second)->hosts);
}

// #1806: a server was booked although its job was gone from only one of two views.
TEST(PeersTest, AHostThatVanishesAndComesBackIsStillTheBlocks) {
  BlockWorld world({.hosts = 1});
  const auto block = world.Buy({.days = 7});
  world.MoveTo(block->start());
  world.SetHeld(0, "team-a");
  world.book().RemoveHost("us-00", world.now());
  world.MoveBy(kMinute);
  EXPECT_TRUE(world.Search({.days = 1}).offerings.empty());
  world.SetHeld(0, "");  // the host is back, and has forgotten its gang
  EXPECT_EQ(world.Find({.days = 1}).start, block->end);
  EXPECT_EQ(world.Now(*block)->hosts, std::vector<std::string>{"us-00"});
}

// #1: a search at the very second of a reservation's end.
TEST(PeersTest, AtTheMomentOfAnEndTheHostHasOneOwner) {
  for (const std::chrono::nanoseconds off :
       {std::chrono::nanoseconds(-1), std::chrono::nanoseconds(0), std::chrono::nanoseconds(1)}) {
    BlockWorld world({.hosts = 1});
    const auto block = world.Buy({.days = 1});
    world.MoveTo(block->end - kHour);
    // Time passes, and the book does not know yet that the block is over.
    const WallTime now = block->end + off;
    const auto search = CheckQuery(
        {.ultraserver_type = "u-trn2x64", .ultraserver_count = 1, .duration_hours = 24}, now);
    const SearchAnswer answer =
        SearchOfferings(world.book().profile(), world.book().prices(), *search, now);
    ASSERT_FALSE(answer.offerings.empty());
    for (const Offering& offering : answer.offerings) EXPECT_GE(offering.start, block->end);
    PurchaseOrder order;
    order.offering_id = OfferingId(answer.offerings.front());
    order.key.ns = "team-b";
    const auto next = world.book().Purchase(order, now);
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_TRUE((*next)->hosts.empty());
    world.MoveTo((*next)->start());
    EXPECT_EQ(world.StateOf(*block), "expired");
    EXPECT_EQ(world.StateOf(**next), "active");
  }
}

// #1868: a reservation without any node left ran elsewhere, and on the old nodes again.
TEST(PeersTest, ABlockThatHasLostAllOfItsHostsTakesNoOthers) {
  BlockWorld world({.hosts = 4});
  const auto block = world.Buy({.days = 7, .count = 2});
  world.MoveTo(block->start());
  const auto hosts = world.Now(*block)->hosts;
  world.SetHealthy(0, false);
  world.SetHealthy(1, false);
  EXPECT_EQ(world.StateOf(*block), "unavailable");
  world.MoveBy(kDay);
  EXPECT_EQ(world.Now(*block)->hosts, hosts);
  EXPECT_TRUE(world.Search({.days = 1, .count = 1}).offerings.front().start >= block->end);
  world.SetHealthy(0, true);
  world.SetHealthy(1, true);
  EXPECT_EQ(world.StateOf(*block), "active");
  EXPECT_EQ(world.Now(*block)->hosts, hosts);
}

// #1006: a reservation was confirmed on a node that was down.
TEST(PeersTest, NothingIsSoldOnAHostThatIsDown) {
  BlockWorld world({.hosts = 2});
  const Offering both = world.Find({.days = 1, .count = 2});
  world.SetHealthy(1, false);
  EXPECT_TRUE(world.Search({.days = 1, .count = 2}).offerings.empty());
  EXPECT_EQ(Ec2CodeOf(world.TryToBuy(both, {}).status()), "InvalidCapacityBlockOfferingIdExpired");
  const auto block = world.Buy({.days = 1});
  world.MoveTo(block->start());
  EXPECT_EQ(world.Now(*block)->hosts, std::vector<std::string>{"us-00"});
}

// #729: a job that ran past its end kept new reservations from being confirmed.
TEST(PeersTest, WorkThatRunsPastItsEndKeepsTomorrowForSale) {
  BlockWorld world({.hosts = 1});
  world.SetHeld(0, "team-b", world.now() + kHour);
  world.MoveBy(kHour * 2);
  const auto block = world.Buy({.days = 1});
  EXPECT_EQ(block->start(), world.next_boundary());
  world.SetHeld(0, "");
  world.MoveTo(block->start());
  EXPECT_EQ(world.StateOf(*block), "active");
}

}  // namespace
}  // namespace tahoma::controller

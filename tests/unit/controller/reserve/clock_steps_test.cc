// Clocks that are set forth and back by hours to months in the middle of blocks' lives.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "controller/reserve/book.h"
#include "controller/reserve/refusal.h"
#include "tests/unit/controller/reserve/block_world.h"

namespace tahoma::controller {
namespace {

using std::chrono::nanoseconds;
using ::testing::StartsWith;

constexpr char kLife[] =
    "CapacityBlockPurchased, CapacityBlockScheduled, CapacityBlockHardwareBound, "
    "CapacityBlockDelivered, CapacityBlockExpirationWarning, CapacityBlockReclaimed, "
    "CapacityBlockExpired";

void Append(std::string& story, const std::string& news) {
  if (!story.empty() && !news.empty()) story += ", ";
  story += news;
}

// Whatever the clock does, a block lives once, in order: the warning comes before the hardware is
// taken back, and no event of the block happens or is told twice.
TEST(ClockStepsTest, ABlockLivesOnceWhereverInItsLifeTheClockIsSetForthAndBack) {
  for (const nanoseconds at : {nanoseconds(0), nanoseconds(kDay - kMinute * 5), nanoseconds(kDay),
                               nanoseconds(kDay * 2 - kMinute * 65),
                               nanoseconds(kDay * 2 - kMinute * 30), nanoseconds(kDay * 2)}) {
    for (const nanoseconds step :
         {nanoseconds(1), nanoseconds(kHour), nanoseconds(kDay), nanoseconds(kDay * 90)}) {
      for (const int sign : {1, -1}) {
        BlockWorld world({.hosts = 1});
        const auto block = world.Buy({.days = 1, .start_in_days = 1});
        const WallTime begin = block->start() - kDay;
        std::string story = world.NewsOf(*block);
        const auto look = [&] {
          Append(story, world.NewsOf(*block));
          EXPECT_THAT(kLife, StartsWith(story));
          const auto now = world.Now(*block);
          EXPECT_TRUE(now->warned || !now->reclaiming);
          EXPECT_TRUE(IsDelivered(now->state) || now->hosts.empty() ||
                      now->state == BlockState::kScheduled);
          world.Audit();
        };
        world.MoveTo(begin + at);
        look();
        const std::string before = world.StateOf(*block);
        world.SetClock(begin + at + step * sign);
        look();
        EXPECT_TRUE(sign > 0 || world.StateOf(*block) == before) << "it went back";
        const std::string meanwhile = world.StateOf(*block);
        world.SetClock(begin + at);
        look();
        EXPECT_EQ(world.StateOf(*block), meanwhile);
        world.Restart(begin + at);
        look();
        EXPECT_EQ(world.StateOf(*block), meanwhile);
        world.SetClock(block->end + kDay * 100);
        look();
        EXPECT_EQ(story, kLife);
      }
    }
  }
}

// The clock is three months ahead for a minute, and nobody notices in time: blocks were delivered
// and have ended. Nothing more happens until the clock reaches that time again, and new blocks
// begin after that time: no moment is lived twice.
TEST(ClockStepsTest, AfterALeapOfThreeMonthsAndBackNewBlocksBeginBehindTheLeap) {
  BlockWorld world({.hosts = 1});
  const WallTime today = world.now();
  const auto early = world.Buy({.days = 1});
  const auto late = world.Buy({.days = 7, .start_in_days = 40});
  const WallTime wrong = today + kDay * 90;
  world.SetClock(wrong);
  EXPECT_EQ(world.NewsOf(*late), kLife) << "in order, and nothing is left out";
  world.SetClock(today + kMinute);
  EXPECT_EQ(world.book().now(), wrong);
  EXPECT_EQ(world.StateOf(*early), "expired");
  EXPECT_FALSE(world.book().wake().has_value()) << "there is nothing to wait for";

  // A search by the wall clock finds no time that has been lived.
  const auto query =
      CheckQuery({.ultraserver_type = "u-trn2x64", .ultraserver_count = 1, .duration_hours = 24},
                 world.book().now());
  ASSERT_TRUE(query.ok());
  const SearchAnswer found =
      SearchOfferings(world.book().profile(), world.book().prices(), *query, world.book().now());
  ASSERT_FALSE(found.offerings.empty());
  for (const Offering& offering : found.offerings) EXPECT_GT(offering.start, wrong);
  const PurchaseOrder again{.offering_id = late->offering_id, .key = {"team-b", ""}};
  EXPECT_EQ(Ec2CodeOf(world.book().Purchase(again, world.now()).status()),
            "InvalidCapacityBlockOfferingIdExpired");
  const auto sold = world.TryToBuy(found.offerings.front(), {});
  ASSERT_TRUE(sold.ok()) << sold.status();
  for (WallTime now = today; now < wrong; now += kDay * 10) {
    world.SetClock(now);
    EXPECT_EQ(world.StateOf(**sold), "scheduled");
  }
  world.SetClock((*sold)->start());
  EXPECT_EQ(world.StateOf(**sold), "active");
}

// A whole year in one step does the work of each day, and no more.
TEST(ClockStepsTest, AYearInOneStepIsAsLongAsItsBlocks) {
  BlockWorld world({.hosts = 4});
  std::vector<std::shared_ptr<const Block>> blocks;
  for (int day = 0; day < 40; ++day) {
    for (int i = 0; i < 4; ++i) blocks.push_back(world.Buy({.days = 1, .start_in_days = day}));
  }
  world.SetClock(world.now() + kDay * 365);
  for (const auto& block : blocks) EXPECT_EQ(world.NewsOf(*block), kLife);
  EXPECT_EQ(world.Find({.days = 1}).start, world.next_boundary());
}

}  // namespace
}  // namespace tahoma::controller

#include "dra-plugin/inventory/health_damper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::dra {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A node whose state is read as time goes by.
struct World {
  explicit World(DampingOptions options = {}) : damper(options) {
    for (int i = 0; i < 16; ++i) inventory.chips.push_back({.index = i});
  }
  wire::Chip& chip(int index) { return inventory.chips.at(static_cast<std::size_t>(index)); }
  void Break(int index, const std::string& reason = "dma") {
    chip(index).healthy = false;
    chip(index).reason = reason;
  }
  void Repair(int index) {
    chip(index).healthy = true;
    chip(index).reason.clear();
  }
  void Pass(nanoseconds time) { now += time; }
  wire::Chip Shown(int index) {
    return damper.Damp(inventory, now).chips.at(static_cast<std::size_t>(index));
  }
  // Breaks the chip for a second, and returns how long the fault is shown after its repair.
  nanoseconds HoldAfterFault(int index) {
    Break(index);
    EXPECT_FALSE(Shown(index).healthy) << "a fault is believed at once";
    Pass(seconds(1));
    Repair(index);
    const MonotonicTime repaired = now;
    while (!Shown(index).healthy) now = damper.wake().value();
    EXPECT_EQ(damper.wake(), std::nullopt);
    return now - repaired;
  }

  HealthDamper damper;
  wire::Inventory inventory;
  MonotonicTime now{hours(5)};
};

TEST(HealthDamperTest, ANicThatGoesDownAgainStaysDownForAWhile) {
  World world({.hold = seconds(10)});
  for (int i = 0; i < 2; ++i) {
    world.chip(3).efa_down = true;
    EXPECT_TRUE(world.Shown(3).efa_down);
    world.chip(3).efa_down = false;
    EXPECT_EQ(world.Shown(3).efa_down, i == 1);
    EXPECT_TRUE(world.Shown(3).healthy);
    EXPECT_THAT(world.Shown(3).links_down, IsEmpty());
  }
  world.Pass(seconds(10));
  EXPECT_FALSE(world.Shown(3).efa_down);
}

TEST(HealthDamperTest, TheFirstFaultGoesWithItsRepair) {
  World world;
  EXPECT_EQ(world.HoldAfterFault(3), seconds(0));
}

TEST(HealthDamperTest, AFaultThatComesBackStaysLongerEachTimeButNotForEver) {
  World world;
  std::vector<nanoseconds> holds;
  for (int i = 0; i < 9; ++i) holds.push_back(world.HoldAfterFault(3));
  EXPECT_THAT(holds, ElementsAre(seconds(0), seconds(10), seconds(20), seconds(40), seconds(80),
                                 seconds(160), minutes(5), minutes(5), minutes(5)));
  EXPECT_EQ(world.HoldAfterFault(4), seconds(0)) << "another chip is not to blame";
  world.Pass(minutes(11));
  EXPECT_EQ(world.HoldAfterFault(3), seconds(0)) << "it is forgotten after a quiet time";
}

TEST(HealthDamperTest, AFaultThatReturnsWhileHeldCountsOnceMore) {
  World world;
  world.HoldAfterFault(3);
  world.Break(3, "dma");
  world.Shown(3);
  world.Repair(3);
  EXPECT_EQ(world.Shown(3).reason, "dma") << "held";
  world.Pass(seconds(9));
  world.Break(3, "dead");
  EXPECT_EQ(world.Shown(3).reason, "dead") << "the fault of now is shown";
  world.Repair(3);
  EXPECT_FALSE(world.Shown(3).healthy);
  EXPECT_EQ(world.damper.wake(), world.now + seconds(20));
}

TEST(HealthDamperTest, LinksAreDampedOneByOne) {
  World world;
  for (int i = 0; i < 2; ++i) {
    world.chip(5).links_down = {"x+", "y-"};
    EXPECT_THAT(world.Shown(5).links_down, ElementsAre("x+", "y-"));
    world.chip(5).links_down = {"y-"};
    const std::vector<std::string> held = {"x+", "y-"};
    EXPECT_EQ(world.Shown(5).links_down, i == 0 ? std::vector<std::string>{"y-"} : held);
  }
  EXPECT_TRUE(world.Shown(5).healthy);
  world.Pass(seconds(10));
  EXPECT_THAT(world.Shown(5).links_down, ElementsAre("y-"));
  world.chip(5).links_down.clear();
  EXPECT_THAT(world.Shown(5).links_down, IsEmpty()) << "y- had never gone";
}

TEST(HealthDamperTest, WithoutAHoldNothingIsDamped) {
  World world({.hold = seconds(0)});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(world.HoldAfterFault(3), seconds(0));
}

// Random faults: a broken chip is shown broken, a repaired chip at most `longest` after its repair,
// and at each wake something changes.
TEST(HealthDamperTest, HidesNoFaultAndNoRepairForLong) {
  Rng rng(7);
  for (int round = 0; round < 50; ++round) {
    World world;
    std::vector<MonotonicTime> repaired(16, world.now - hours(1));
    for (int step = 0; step < 400; ++step) {
      const int index = static_cast<int>(rng.Below(3));
      if (rng.Below(2) == 0) {
        world.Break(index);
      } else if (!world.chip(index).healthy) {
        world.Repair(index);
        repaired.at(static_cast<std::size_t>(index)) = world.now;
      }
      const wire::Inventory shown = world.damper.Damp(world.inventory, world.now);
      for (std::size_t i = 0; i < 16; ++i) {
        const bool healthy = world.inventory.chips[i].healthy;
        const bool long_ago = world.now - repaired[i] >= minutes(5);
        EXPECT_TRUE(healthy || !shown.chips[i].healthy);
        EXPECT_TRUE(!healthy || !long_ago || shown.chips[i].healthy);
      }
      if (const auto wake = world.damper.wake()) {
        ASSERT_GT(*wake, world.now);
        HealthDamper later = world.damper;
        EXPECT_NE(later.Damp(world.inventory, *wake), shown);
      }
      world.Pass(seconds(static_cast<std::int64_t>(rng.Below(200))));
    }
  }
}

}  // namespace
}  // namespace tahoma::dra

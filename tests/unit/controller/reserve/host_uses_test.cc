// Hosts are kept for blocks before these are bound to them, as few as suffice.

#include "controller/reserve/host_uses.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "lib/base/rng.h"
#include "tests/unit/controller/reserve/block_world.h"

namespace tahoma::controller {
namespace {

// Returns "us-00: -, us-01: kept from 2 days, us-02: cr-…" counted from the first boundary.
std::string Text(const std::map<std::string, BlockUse>& uses, WallTime first) {
  std::string text;
  for (const auto& [host, use] : uses) {
    if (!text.empty()) text += ", ";
    text += host + ": " + (use.reservation.empty() ? "" : "taken");
    if (use.kept_from) {
      text += fmt::format("kept from day {}",
                          std::chrono::floor<std::chrono::days>(*use.kept_from - first).count());
    }
    if (use == BlockUse{}) text += "free";
  }
  return text;
}

TEST(HostUsesTest, AsManyHostsAreKeptAsABlockNeeds) {
  BlockWorld world({.hosts = 4});
  const WallTime first = world.next_boundary();
  world.Buy({.days = 2, .count = 2, .start_in_days = 3});
  EXPECT_EQ(Text(world.book().TakeUses(), first),
            "us-00: kept from day 3, us-01: kept from day 3, us-02: free, us-03: free");
  EXPECT_TRUE(world.book().TakeUses().empty()) << "nothing has changed";
}

TEST(HostUsesTest, BlocksThatFollowOneAnotherShareAHost) {
  BlockWorld world({.hosts = 3});
  const WallTime first = world.next_boundary();
  world.Buy({.days = 2, .start_in_days = 1});
  world.Buy({.days = 2, .start_in_days = 3});
  world.Buy({.days = 2, .start_in_days = 6});
  EXPECT_EQ(Text(world.book().TakeUses(), first),
            "us-00: kept from day 1, us-01: free, us-02: free");
}

TEST(HostUsesTest, AnActiveBlocksHostsAreTaken) {
  BlockWorld world({.hosts = 2});
  const WallTime first = world.next_boundary();
  const auto now = world.Buy({.days = 1});
  const auto next = world.Buy({.days = 1, .start_in_days = 1});
  world.MoveTo(now->start());
  EXPECT_EQ(Text(world.book().TakeUses(), first), "us-00: takenkept from day 1, us-01: free");
  world.MoveTo(next->start());
  EXPECT_EQ(Text(world.book().TakeUses(), first), "us-00: taken, us-01: free");
  world.MoveTo(next->end);
  EXPECT_EQ(Text(world.book().TakeUses(), first), "us-00: free, us-01: free");
}

TEST(HostUsesTest, AHostInUseIsKeptWhereItIsFreeInTime) {
  BlockWorld world({.hosts = 3});
  const WallTime first = world.next_boundary();
  world.SetHeld(0, "team-b");
  world.SetHeld(2, "team-b", first + kDay);
  world.Buy({.days = 1, .count = 1, .start_in_days = 2});
  EXPECT_EQ(Text(world.book().TakeUses(), first),
            "us-00: free, us-01: free, us-02: kept from day 2");
}

TEST(HostUsesTest, WhatIsLentIsKeptLast) {
  BlockWorld world({.hosts = 3});
  const WallTime first = world.next_boundary();
  world.host(0).lent = true;
  world.Tell(0);
  world.Buy({.days = 1, .count = 2, .start_in_days = 2});
  EXPECT_EQ(Text(world.book().TakeUses(), first),
            "us-00: free, us-01: kept from day 2, us-02: kept from day 2");
}

TEST(HostUsesTest, AnActiveBlockThatLendsSaysUntilWhen) {
  BlockWorld world({.hosts = 1});
  const auto block = world.Buy({.days = 1, .terms = {.lend_idle = true}});
  world.MoveTo(block->start());
  EXPECT_EQ(world.book().TakeUses().at("us-00").lent_until, block->reclaim());
  world.MoveTo(block->reclaim());
  EXPECT_EQ(world.book().TakeUses().at("us-00").lent_until, std::nullopt);
}

int Spares(const std::map<std::string, BlockUse>& uses) {
  return static_cast<int>(
      std::count_if(uses.begin(), uses.end(), [](const auto& use) { return use.second.spare; }));
}

TEST(HostUsesTest, SparesAreKeptAsFarAsBlocksAreSold) {
  BlockWorld world({.hosts = 64});
  world.Buy({.days = 1, .start_in_days = 1});
  EXPECT_EQ(Spares(world.book().TakeUses()), 1) << "one host is sold";
  world.Buy({.days = 1, .count = 3, .start_in_days = 1});
  auto uses = world.book().TakeUses();
  EXPECT_EQ(Spares(uses), 2) << "one host in 32";
  EXPECT_TRUE(uses.at("us-63").spare);
  world.SetHeld(63, "team-b", world.now() + kHour);
  uses = world.book().TakeUses();
  EXPECT_FALSE(uses.at("us-63").spare) << "it is in use";
  EXPECT_EQ(Spares(uses), 2);
}

// Intervals need as many hosts as the densest moment has: no proposal needs fewer, ours no more.
TEST(HostUsesTest, NoMoreHostsAreKeptThanTheDensestDayNeeds) {
  Rng rng(5);
  for (int round = 0; round < 40; ++round) {
    BookOptions options;
    options.hosts.one_spare_in = 0;
    BlockWorld world({.hosts = 12, .book = options});
    std::map<Slot, int> booked;
    for (int i = 0; i < 25; ++i) {
      const int days = static_cast<int>(rng.Below(4)) + 1;
      const Slot start = SlotOf(world.now()) + 1 + static_cast<Slot>(rng.Below(12));
      const Product& product = world.product();
      const Wish wish{.owner = fmt::format("team-{}", i)};
      const auto bought = world.TryToBuy({.product = &product,
                                          .count = static_cast<int>(rng.Below(4)) + 1,
                                          .zone = world.host(0).pool.zone,
                                          .start = StartOf(start),
                                          .end = StartOf(start + days),
                                          .rate = product.rate},
                                         wish);
      if (!bought.ok()) continue;
      for (Slot slot = start; slot < start + days; ++slot) booked[slot] += (*bought)->bought.count;
    }
    int densest = 0;
    for (const auto& [slot, count] : booked) densest = std::max(densest, count);
    int kept = 0;
    for (const auto& [host, use] : world.book().TakeUses()) kept += use.kept_from ? 1 : 0;
    EXPECT_EQ(kept, densest) << round;
  }
}

TEST(HostUsesTest, ABlockWhoseUsageWasRecordedKeepsItsHosts) {
  BlockWorld world({.hosts = 2});
  const WallTime first = world.next_boundary();
  const auto block = world.Buy({.days = 2, .start_in_days = 1});
  world.MoveTo(block->start());
  for (int hour = 1; hour < 5; ++hour) {
    world.book().SetUsage(block->reservation, {.chip_ms = {.used = hour}, .as_of = block->start()});
  }
  world.Buy({.days = 1, .start_in_days = 1});
  EXPECT_EQ(Text(world.book().TakeUses(), first), "us-00: taken, us-01: kept from day 2");
}

}  // namespace
}  // namespace tahoma::controller

// Hosts are kept for blocks before these are bound to them, as few as suffice.

#include "controller/reserve/host_uses.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tahoma::controller

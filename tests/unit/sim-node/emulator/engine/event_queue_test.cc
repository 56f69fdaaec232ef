// The queue is compared with a sorted list on random schedules; the order of equal events and the
// arithmetic of virtual time have tests of their own.

#include "sim-node/emulator/engine/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::sim {
namespace {

VirtualTime At(std::int64_t picoseconds) { return VirtualTime(VirtualDuration(picoseconds)); }

TEST(VirtualTimeTest, TheTimeOfAMebibyteOverAnXLinkIsRoundedUp) {
  EXPECT_EQ(TransferTime(1 << 20, 128'000'000'000), VirtualDuration(8'192'000));
  EXPECT_EQ(TransferTime(1, 128'000'000'000), VirtualDuration(8));  // 7.8 ps
  EXPECT_EQ(TransferTime(0, 1), VirtualDuration(0));
}

TEST(VirtualTimeTest, AllOfAnUltraServersMemoryOverOneZLinkDoesNotOverflow) {
  EXPECT_EQ(TransferTime(6ull << 40, 64'000'000'000).count(), 103'079'215'104'000);
}

TEST(VirtualTimeTest, MicrosecondsRoundToPicoseconds) {
  EXPECT_EQ(Microseconds(1.5).count(), 1'500'000);
  EXPECT_EQ(Microseconds(0.0000005).count(), 1);
  EXPECT_DOUBLE_EQ(Nanoseconds(Microseconds(1.5)), 1500.0);
}

TEST(EventQueueTest, EqualTimesRunByPriorityThenByOrderOfScheduling) {
  EventQueue queue;
  std::vector<int> ran;
  queue.Schedule(At(5), EventPriority::kStart, [&] { ran.push_back(4); });
  queue.Schedule(At(5), EventPriority::kArrival, [&] { ran.push_back(2); });
  queue.Schedule(At(5), EventPriority::kArrival, [&] { ran.push_back(3); });
  queue.Schedule(At(5), EventPriority::kFault, [&] { ran.push_back(1); });
  queue.Schedule(At(4), EventPriority::kStart, [&] { ran.push_back(0); });
  queue.RunUntilIdle();
  EXPECT_EQ(ran, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(queue.now(), At(5));
}

TEST(EventQueueTest, AnEventMayScheduleAnotherAtTheSameInstant) {
  EventQueue queue;
  std::vector<VirtualTime> seen;
  queue.Schedule(At(7), EventPriority::kStart, [&] {
    queue.Schedule(queue.now(), EventPriority::kFault, [&] { seen.push_back(queue.now()); });
  });
  queue.RunUntilIdle();
  EXPECT_EQ(seen, (std::vector<VirtualTime>{At(7)}));
}

TEST(EventQueueTest, RunUntilStopsAfterTheGivenInstantAndMovesThere) {
  EventQueue queue;
  int ran = 0;
  queue.Schedule(At(10), EventPriority::kStart, [&] { ++ran; });
  queue.Schedule(At(11), EventPriority::kStart, [&] { ++ran; });
  queue.RunUntil(At(10));
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(queue.now(), At(10));
  EXPECT_EQ(queue.size(), 1u);
}

TEST(EventQueueTest, ACancelledEventDoesNotRunAndCannotBeCancelledTwice) {
  EventQueue queue;
  int ran = 0;
  const auto first = queue.Schedule(At(1), EventPriority::kStart, [&] { ran += 1; });
  const auto second = queue.Schedule(At(2), EventPriority::kStart, [&] { ran += 10; });
  const auto third = queue.Schedule(At(3), EventPriority::kStart, [&] { ran += 100; });
  EXPECT_TRUE(queue.Cancel(second));
  EXPECT_FALSE(queue.Cancel(second));
  EXPECT_TRUE(queue.Cancel(first));
  EXPECT_EQ(queue.size(), 1u);
  queue.RunUntilIdle();
  EXPECT_EQ(ran, 100);
  EXPECT_FALSE(queue.Cancel(third));
  EXPECT_FALSE(queue.RunNext());
}

TEST(EventQueueTest, RandomSchedulesRunAsASortedListWould) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    EventQueue queue;
    std::vector<std::tuple<std::int64_t, EventPriority, int>> expected;
    std::vector<int> ran;
    std::vector<int> cancelled;
    for (int i = 0; i < 200; ++i) {
      const auto time = static_cast<std::int64_t>(rng.Below(50));
      const auto priority = static_cast<EventPriority>(rng.Below(3));
      const auto id = queue.Schedule(At(time), priority, [&ran, i] { ran.push_back(i); });
      if (rng.Chance(1, 5)) {
        EXPECT_TRUE(queue.Cancel(id));
      } else {
        expected.emplace_back(time, priority, i);
      }
    }
    queue.RunUntilIdle();
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(ran.size(), expected.size()) << "seed " << seed;
    for (std::size_t i = 0; i < ran.size(); ++i) {
      EXPECT_EQ(ran[i], std::get<2>(expected[i])) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tahoma::sim

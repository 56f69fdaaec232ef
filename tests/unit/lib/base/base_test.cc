// Time, randomness, the queue and the checks, against hand-computed values and slow properties.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

#include "lib/base/bounded_queue.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(ClockTest, TimeIsWrittenAndReadAsKubernetesDoes) {
  const WallTime time = WallTime(seconds(1'795'253'700)) + nanoseconds(123'456'789);
  EXPECT_EQ(FormatTime(time), "2026-11-21T09:35:00Z");
  EXPECT_EQ(FormatMicroTime(time), "2026-11-21T09:35:00.123456Z");
  EXPECT_EQ(*ParseTime("2026-11-21T09:35:00.123456789Z"), time);
  EXPECT_EQ(*ParseTime("2026-11-21T09:35:00Z"), WallTime(seconds(1'795'253'700)));
}

TEST(ClockTest, TimesBeyondTheClocksRangeAreClampedToItsRange) {
  const WallTime last = *ParseTime("9999-12-31T23:59:59Z");
  EXPECT_EQ(FormatTime(last), "2261-12-31T00:00:00Z");
  EXPECT_LT(last, last + std::chrono::hours(24));
  EXPECT_EQ(FormatTime(*ParseTime("0001-01-01T00:00:00Z")), "1678-01-01T00:00:00Z");
}

TEST(ClockTest, EveryTimeIsReadAsItWasWritten) {
  Rng rng(1);
  for (int round = 0; round < 1000; ++round) {
    const WallTime time(
        seconds(static_cast<std::int64_t>(rng.Below(18'000'000'000)) - 9'000'000'000));
    EXPECT_EQ(*ParseTime(FormatTime(time)), time) << FormatTime(time);
  }
}

TEST(ClockTest, AnythingElseThanUtcTimeIsRefused) {
  for (const char* text : {"", "yesterday", "2026-11-21", "2026-02-30T00:00:00Z",
                           "2026-11-21T25:00:00Z", "2026-11-21T09:35:00", "2026-11-21T09:35:00.Z",
                           "2026-11-21T09:35:00+01:00", "2026-11-21T09:35:00.1234567890Z",
                           "2026-11-21T9:35:00Z", " 026-11-21T09:35:00Z", "+026-11-21T09:35:00Z",
                           "2026-11-21T09:35:-1Z", "2026/11/21T09:35:00Z", "2026-11-21T09:35Z"}) {
    EXPECT_EQ(ParseTime(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(ClockTest, AManualClockMovesOnlyWhenTold) {
  ManualClock clock(WallTime(seconds(100)));
  EXPECT_EQ(clock.WallNow(), WallTime(seconds(100)));
  clock.Advance(seconds(5));
  EXPECT_EQ(clock.WallNow(), WallTime(seconds(105)));
  EXPECT_EQ(clock.MonotonicNow(), MonotonicTime(seconds(5)));
}

TEST(RngTest, TheSameSeedGivesTheSameNumbers) {
  Rng a(7), b(7), c(8);
  EXPECT_EQ(NewUuid(a), NewUuid(b));
  EXPECT_NE(NewUuid(a), NewUuid(c));
}

TEST(RngTest, BelowCoversItsRangeAndNothingElse) {
  Rng rng(1);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(rng.Below(6));
  EXPECT_EQ(seen, (std::set<std::uint64_t>{0, 1, 2, 3, 4, 5}));
}

TEST(RngTest, UuidsAreVersionFour) {
  Rng rng(3);
  const std::string uuid = NewUuid(rng);
  ASSERT_EQ(uuid.size(), 36U);
  EXPECT_EQ(uuid[14], '4');
  EXPECT_NE(std::string("89ab").find(uuid[19]), std::string::npos);
}

TEST(BoundedQueueTest, RefusesItemsBeyondItsBoundAndKeepsOrder) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.TryPush(1));
  EXPECT_TRUE(queue.TryPush(2));
  EXPECT_FALSE(queue.TryPush(3));
  EXPECT_EQ(queue.PopAll(10), (std::vector<int>{1, 2}));
}

TEST(BoundedQueueTest, PassesEverythingFromThreadToThread) {
  BoundedQueue<int> queue(3);
  std::thread producer([&] {
    for (int i = 0; i < 1000; ++i) queue.Push(i);
    queue.Close();
  });
  std::vector<int> got;
  for (auto batch = queue.PopAll(7); !batch.empty(); batch = queue.PopAll(7)) {
    got.insert(got.end(), batch.begin(), batch.end());
  }
  producer.join();
  ASSERT_EQ(got.size(), 1000U);
  EXPECT_EQ(got.back(), 999);
  EXPECT_FALSE(queue.TryPush(1)) << "a closed queue takes nothing";
}

absl::Status Fails() { return NotFound("no chip {}", 17); }
absl::StatusOr<int> PassesOn() {
  TAHOMA_RETURN_IF_ERROR(Annotate(Fails(), "node-1"));
  return 1;
}

TEST(StatusTest, TheCallerAddsTheContextToTheReason) {
  EXPECT_EQ(PassesOn().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(PassesOn().status()), "node-1: no chip 17");
}

TEST(CheckDeathTest, ABrokenPromiseOfOurOwnAborts) {
  EXPECT_DEATH(TAHOMA_CHECK(1 + 1 == 3), "CHECK failed: 1 \\+ 1 == 3");
  EXPECT_DEATH(TAHOMA_CHECK_OK(Fails()), "NOT_FOUND: no chip 17");
}

}  // namespace
}  // namespace tahoma

// Block time and wall time, there and back.

#include "controller/reserve/block_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>

namespace tahoma::controller {
namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

const WallTime kOrigin = *ParseTime("2026-11-25T18:00:00Z");

TEST(BlockTimeTest, WithoutAScaleBothTimesAreTheSame) {
  const BlockTime time;
  EXPECT_FALSE(time.test());
  for (const WallTime moment : {WallTime::min(), WallTime{}, kOrigin, WallTime::max()}) {
    EXPECT_EQ(time.ToBlock(moment), moment);
    EXPECT_EQ(time.ToWall(moment), moment);
  }
}

TEST(BlockTimeTest, At1440ADayPassesInAMinute) {
  const BlockTime time(kOrigin, 1440);
  EXPECT_EQ(time.ToBlock(kOrigin), kOrigin);
  EXPECT_EQ(time.ToBlock(kOrigin + 1min), kOrigin + 24h);
  EXPECT_EQ(time.ToWall(kOrigin + 24h), kOrigin + 1min);
  EXPECT_EQ(time.ToBlock(kOrigin - 1s), kOrigin - 24min);
}

TEST(BlockTimeTest, AMomentIsDueWhenItHasComeAndNotBefore) {
  const BlockTime time(kOrigin, 7);
  const WallTime due = kOrigin + 1ns;
  EXPECT_GE(time.ToBlock(time.ToWall(due)), due);
  EXPECT_LT(time.ToBlock(time.ToWall(due) - 1ns), due);
}

RC_GTEST_PROP(BlockTimeTest, EveryMomentIsDueWhenItHasComeAndNotBefore, ()) {
  const auto scale = *rc::gen::inRange<std::int64_t>(2, BlockTime::kScaleMost + 1);
  const BlockTime time(kOrigin, scale);
  const auto away = *rc::gen::inRange<std::int64_t>(-1'000'000'000'000'000, 1'000'000'000'000'000);
  const WallTime due = kOrigin + nanoseconds(away);
  RC_ASSERT(time.ToBlock(time.ToWall(due)) >= due);
  RC_ASSERT(time.ToBlock(time.ToWall(due) - 1ns) < due);
}

RC_GTEST_PROP(BlockTimeTest, LaterIsNeverEarlierWhateverTheClockSays, ()) {
  const auto scale = *rc::gen::inRange<std::int64_t>(2, BlockTime::kScaleMost + 1);
  const BlockTime time(kOrigin, scale);
  const WallTime a(nanoseconds(*rc::gen::arbitrary<std::int64_t>()));
  const WallTime b(nanoseconds(*rc::gen::arbitrary<std::int64_t>()));
  RC_ASSERT(time.ToBlock(std::min(a, b)) <= time.ToBlock(std::max(a, b)));
  RC_ASSERT(time.ToWall(std::min(a, b)) <= time.ToWall(std::max(a, b)));
}

TEST(BlockTimeTest, AtItsEndATestClockStandsStill) {
  const BlockTime time(kOrigin, BlockTime::kScaleMost);
  const WallTime end = time.ToBlock(kOrigin + 24h * 365);
  EXPECT_EQ(FormatTime(end), "2200-01-01T00:00:00Z");
  EXPECT_EQ(time.ToBlock(WallTime::max()), end);
  EXPECT_EQ(FormatTime(time.ToBlock(WallTime::min())), "1970-01-01T00:00:00Z");
}

TEST(BlockTimeTest, ReadsWhatItWroteAndNothingElse) {
  const BlockTime time(kOrigin, 1440);
  const std::string text = EncodeBlockTime(time);
  EXPECT_EQ(text, "scale 1440 origin 1795629600000000000");
  EXPECT_EQ(*DecodeBlockTime(text), time);
  for (const char* wrong :
       {"", "scale", "scale 1440", "scale 1 origin 5", "scale 100001 origin 5",
        "scale 1440 origin -5", "scale 1440 origin 9223372036854775807", "scale 1440 origin 5 ",
        "scale 1440 origin 99999999999999999999", "origin 5 scale 1440"}) {
    const auto decoded = DecodeBlockTime(wrong);
    ASSERT_FALSE(decoded.ok()) << wrong;
    EXPECT_TRUE(absl::IsDataLoss(decoded.status()));
    EXPECT_THAT(std::string(decoded.status().message()), HasSubstr("is no test clock"));
  }
}

TEST(BlockTimeTest, ABlockClockShowsBlockTimeAndTheMachinesMonotonicTime) {
  ManualClock machine(kOrigin);
  const BlockClock clock(machine, BlockTime(kOrigin, 60));
  machine.Advance(2s);
  EXPECT_EQ(clock.WallNow(), kOrigin + 2min);
  EXPECT_EQ(clock.MonotonicNow(), machine.MonotonicNow());
}

}  // namespace
}  // namespace tahoma::controller

// The clock of Capacity Blocks in the admin API.

#include "controller/admin/clock_route.h"

#include <gtest/gtest.h>

#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

using namespace std::chrono_literals;

Json Ask(const Clock& clock, const BlockTime& time, WallTime block_now = {}) {
  Snapshot snapshot;
  snapshot.block_now = block_now;
  snapshot.block_time = time;
  const Route route =
      ClockRoute(clock, time, [&] { return std::make_shared<const Snapshot>(snapshot); });
  const rest::Response answer = route.handler(rest::Request{});
  EXPECT_EQ(answer.status, 200);
  return TryParseJson(answer.body);
}

TEST(ClockRouteTest, SaysBothTimesOfATest) {
  ManualClock clock(*ParseTime("2026-11-25T18:00:00Z"));
  const BlockTime time(clock.WallNow(), 1440);
  clock.Advance(1s);
  EXPECT_EQ(Ask(clock, time), (Json{{"wallTime", "2026-11-25T18:00:01.000000Z"},
                                    {"blockTime", "2026-11-25T18:24:00.000000Z"},
                                    {"timeScale", 1440},
                                    {"testClock", true},
                                    {"blocksAheadSeconds", 0}}));
}

TEST(ClockRouteTest, WithoutATestBothTimesAreTheSame) {
  const ManualClock clock(*ParseTime("2026-11-25T18:00:00Z"));
  const Json answer = Ask(clock, BlockTime());
  EXPECT_EQ(answer["wallTime"], answer["blockTime"]);
  EXPECT_EQ(answer["timeScale"], 1);
  EXPECT_EQ(answer["testClock"], false);
}

TEST(ClockRouteTest, SaysHowFarBlocksAreAheadOfAClockThatWasSetBack) {
  const ManualClock clock(*ParseTime("2026-11-25T18:00:00Z"));
  EXPECT_EQ(Ask(clock, BlockTime(), clock.WallNow() - 1s)["blocksAheadSeconds"], 0);
  EXPECT_EQ(Ask(clock, BlockTime(), clock.WallNow() + 24h)["blocksAheadSeconds"], 86400);
  const BlockTime time(clock.WallNow(), 1440);
  EXPECT_EQ(Ask(clock, time, clock.WallNow() + 24h)["blocksAheadSeconds"], 86400);
}

}  // namespace
}  // namespace tahoma::controller

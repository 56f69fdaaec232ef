// What the admin API says of the clock of Capacity Blocks.

#include "controller/admin/clock_route.h"

#include <gtest/gtest.h>

#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

using namespace std::chrono_literals;

Json Ask(const Clock& clock, const BlockTime& time) {
  const rest::Response answer = ClockRoute(clock, time).handler(rest::Request{});
  EXPECT_EQ(answer.status, 200);
  return Json::parse(answer.body, nullptr, false);
}

TEST(ClockRouteTest, SaysBothTimesOfATest) {
  ManualClock clock(*ParseTime("2026-11-25T18:00:00Z"));
  const BlockTime time(clock.WallNow(), 1440);
  clock.Advance(1s);
  EXPECT_EQ(Ask(clock, time), (Json{{"wallTime", "2026-11-25T18:00:01.000000Z"},
                                    {"blockTime", "2026-11-25T18:24:00.000000Z"},
                                    {"timeScale", 1440},
                                    {"testClock", true}}));
}

TEST(ClockRouteTest, WithoutATestBothTimesAreTheSame) {
  const ManualClock clock(*ParseTime("2026-11-25T18:00:00Z"));
  const Json answer = Ask(clock, BlockTime());
  EXPECT_EQ(answer["wallTime"], answer["blockTime"]);
  EXPECT_EQ(answer["timeScale"], 1);
  EXPECT_EQ(answer["testClock"], false);
}

}  // namespace
}  // namespace tahoma::controller

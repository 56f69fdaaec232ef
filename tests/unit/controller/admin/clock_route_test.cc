// What the admin API says of the clock of Capacity Blocks.

#include "controller/admin/clock_route.h"

#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "tests/unit/lib/rest/raw_client.h"

namespace tahoma::controller {
namespace {

using namespace std::chrono_literals;
using testing::RawClient;

Json Ask(const Clock& clock, const BlockTime& time) {
  rest::Metrics metrics;
  rest::Server server(rest::ServerOptions{}, metrics);
  AddClockRoute(server, clock, time);
  EXPECT_EQ(server.Start(), absl::OkStatus());
  const std::string text =
      RawClient(server.port()).Ask("GET /v1/clock HTTP/1.1\r\nHost: localhost\r\n\r\n");
  return Json::parse(text.substr(text.find("\r\n\r\n") + 4), nullptr, false);
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

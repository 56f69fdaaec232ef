#include "controller/admin/clock_route.h"

#include "controller/admin/answer.h"
#include "controller/admin/schema.h"
#include "lib/base/json.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

Route ClockRoute(const Clock& clock, const BlockTime& time) {
  const auto read = [&clock, time](const rest::Request& /*request*/) {
    const WallTime now = clock.WallNow();
    return Answer(200, {{"wallTime", FormatMicroTime(now)},
                        {"blockTime", FormatMicroTime(time.ToBlock(now))},
                        {"timeScale", time.scale()},
                        {"testClock", time.test()}});
  };
  return {.path = "/v1/clock",
          .id = "getClock",
          .summary = "The clock by which Capacity Blocks live.",
          .needs = {.verb = "list", .group = "tahoma.dev", .resource = "capacityblocks"},
          .answer = ObjectOf(
              {{"wallTime", Time("The machine's.")},
               {"blockTime", Time("The blocks'; another one in a test.")},
               {"timeScale", Integer(1, BlockTime::kScaleMost, "Seconds of blocks in a second.")},
               {"testClock", Flag("Whether it is a test's.")}}),
          .handler = read};
}

}  // namespace tahoma::controller

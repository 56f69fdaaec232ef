#include "controller/admin/clock_route.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "controller/admin/answer.h"
#include "controller/admin/schema.h"
#include "lib/base/json.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

std::chrono::nanoseconds BlocksAhead(const Snapshot& snapshot, WallTime now) {
  return std::max(snapshot.block_now - snapshot.block_time.ToBlock(now),
                  std::chrono::nanoseconds(0));
}

Route ClockRoute(const Clock& clock, const BlockTime& time,
                 std::function<std::shared_ptr<const Snapshot>()> snapshot) {
  const auto read = [&clock, time,
                     snapshot = std::move(snapshot)](const rest::Request& /*request*/) {
    const WallTime now = clock.WallNow();
    const auto ahead =
        std::chrono::duration_cast<std::chrono::seconds>(BlocksAhead(*snapshot(), now));
    return Answer(200, {{"wallTime", FormatMicroTime(now)},
                        {"blockTime", FormatMicroTime(time.ToBlock(now))},
                        {"timeScale", time.scale()},
                        {"testClock", time.test()},
                        {"blocksAheadSeconds", ahead.count()}});
  };
  return {.path = "/v1/clock",
          .id = "getClock",
          .summary = "The clock by which Capacity Blocks live.",
          .needs = {.verb = "list", .group = "tahoma.dev", .resource = "capacityblocks"},
          .answer = ObjectOf(
              {{"wallTime", Time("The machine's.")},
               {"blockTime", Time("The blocks'; another one in a test.")},
               {"timeScale", Integer(1, BlockTime::kScaleMost, "Seconds of blocks in a second.")},
               {"testClock", Flag("Whether it is a test's.")},
               {"blocksAheadSeconds",
                Integer(0, std::numeric_limits<std::int32_t>::max(),
                        "How far blocks have lived ahead of it, because it was set back.")}}),
          .handler = read};
}

}  // namespace tahoma::controller

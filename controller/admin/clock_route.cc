#include "controller/admin/clock_route.h"

#include "lib/base/json.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

void AddClockRoute(rest::Server& server, const Clock& clock, const BlockTime& time) {
  server.Route("GET", "/v1/clock", [&clock, time](const rest::Request& /*request*/) {
    const WallTime now = clock.WallNow();
    nlohmann::ordered_json body = {{"wallTime", FormatMicroTime(now)},
                                   {"blockTime", FormatMicroTime(time.ToBlock(now))},
                                   {"timeScale", time.scale()},
                                   {"testClock", time.test()}};
    return rest::Response::Json(200, body.dump(2) + "\n");
  });
}

}  // namespace tahoma::controller

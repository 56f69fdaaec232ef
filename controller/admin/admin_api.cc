#include "controller/admin/admin_api.h"

#include <utility>

#include "controller/admin/clock_route.h"
#include "controller/admin/open_api.h"

namespace tahoma::controller {

AdminApi::AdminApi(Sources sources, const Clock& clock)
    : block_clock_(clock, sources.block_time),
      fleet_(sources.snapshot),
      blocks_(sources.snapshot, std::move(sources.order), block_clock_),
      calendar_(sources.snapshot, block_clock_),
      decisions_(sources.snapshot),
      placements_(sources.snapshot, clock),
      usage_(sources.snapshot, clock),
      queues_(sources.snapshot),
      promises_(sources.snapshot),
      why_(sources.snapshot, clock),
      gang_changes_(sources.objects),
      cordons_(sources.snapshot, sources.objects, block_clock_),
      moves_(sources.snapshot, sources.objects, clock) {
  fleet_.AddRoutes(routes_);
  blocks_.AddRoutes(routes_);
  calendar_.AddRoutes(routes_);
  decisions_.AddRoutes(routes_);
  placements_.AddRoutes(routes_);
  usage_.AddRoutes(routes_);
  queues_.AddRoutes(routes_);
  promises_.AddRoutes(routes_);
  why_.AddRoutes(routes_);
  gang_changes_.AddRoutes(routes_);
  cordons_.AddRoutes(routes_);
  moves_.AddRoutes(routes_);
  routes_.Add(ClockRoute(clock, sources.block_time, sources.snapshot));
  routes_.Add(OpenApiRoute(routes_));
}

void AdminApi::AddTo(rest::Server& server, AdminAccess& access) const {
  routes_.AddTo(server,
                [&access](rest::Handler handler) { return access.Audited(std::move(handler)); });
}

}  // namespace tahoma::controller

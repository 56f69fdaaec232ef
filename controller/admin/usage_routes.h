// The chip time of gangs by namespace, queue and instance type, over REST and as a metric.
//
//   UsageRoutes usage(take, clock);
//   usage.AddRoutes(routes);                               // GET /v1/usage
//   // tahoma_chip_seconds_total{namespace="team-a",queue="train"}
//   AddChipSeconds(metrics, [&] { return loop.snapshot(); }, clock);
//
// Scope: output, up to now. core/commit/gang_usage.h counts, and bounds how many queues there are.
//
// Thread safety: any thread.

#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "controller/admin/route_table.h"
#include "controller/core/snapshot.h"
#include "lib/base/clock.h"
#include "lib/rest/message.h"
#include "lib/rest/metrics.h"

namespace tahoma::controller {

class UsageRoutes {
 public:
  using TakeSnapshot = std::function<std::shared_ptr<const Snapshot>()>;

  // `clock`, the wall's, must outlive it.
  UsageRoutes(TakeSnapshot take, const Clock& clock) : take_(std::move(take)), clock_(clock) {}

  // `this` must outlive the routes.
  void AddRoutes(RouteTable& routes);

  rest::Response List(const rest::Request& request) const;

 private:
  const TakeSnapshot take_;
  const Clock& clock_;
};

// `clock`, the wall clock, must outlive the metrics.
void AddChipSeconds(rest::Metrics& metrics, UsageRoutes::TakeSnapshot take, const Clock& clock);

}  // namespace tahoma::controller

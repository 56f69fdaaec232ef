// The route that says why a gang waits, or where the gang is: the share of the gang's queue, the
// place in the order of service, the gang's promise, and whose promises keep the gang from hardware
// that is free.
//
// Scope: output. The reason is the one that the Gang's status has.
//
// Thread safety: any thread; one question at a time asks the planner.

#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "controller/admin/route_table.h"
#include "controller/core/forecast/what_if.h"
#include "controller/core/snapshot.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

class WhyRoute {
 public:
  using TakeSnapshot = std::function<std::shared_ptr<const Snapshot>()>;

  // `clock` must outlive the WhyRoute.
  WhyRoute(TakeSnapshot take, const Clock& clock) : take_(std::move(take)), clock_(clock) {}

  // `this` must outlive the routes. The schemas Queue and Promise must be named there, too.
  void AddRoutes(RouteTable& routes);

  rest::Response Answer(const rest::Request& request);

 private:
  const TakeSnapshot take_;
  const Clock& clock_;
  Mutex mutex_;
  WhatIf what_if_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::controller

// The route of the calendar: sold and free hosts of each pool by day, and the blocks with their
// hosts over time.
//
// Scope: output of the profile of time (reserve/time_profile.h) and of the blocks.
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

namespace tahoma::controller {

class CalendarRoutes {
 public:
  using TakeSnapshot = std::function<std::shared_ptr<const Snapshot>()>;

  // `clock`, the clock of Capacity Blocks, must outlive the CalendarRoutes.
  CalendarRoutes(TakeSnapshot take, const Clock& clock) : take_(std::move(take)), clock_(clock) {}

  // `this` must outlive the routes.
  void AddRoutes(RouteTable& routes);

  rest::Response Show(const rest::Request& request) const;

 private:
  const TakeSnapshot take_;
  const Clock& clock_;
};

}  // namespace tahoma::controller

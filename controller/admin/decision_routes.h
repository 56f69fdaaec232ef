// The route of the decision log: what was decided about gangs lately, and why.
//
// A reader that follows asks again from `newest` + 1.
//
// Scope: showing what core/decision_log.h keeps.
//
// Thread safety: any thread.

#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "controller/admin/route_table.h"
#include "controller/core/snapshot.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

class DecisionRoutes {
 public:
  using TakeSnapshot = std::function<std::shared_ptr<const Snapshot>()>;

  explicit DecisionRoutes(TakeSnapshot take) : take_(std::move(take)) {}

  // `this` must outlive the routes.
  void AddRoutes(RouteTable& routes);

  rest::Response List(const rest::Request& request) const;

 private:
  const TakeSnapshot take_;
};

}  // namespace tahoma::controller

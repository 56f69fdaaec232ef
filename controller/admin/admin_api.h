// The REST admin API as a whole: all of its routes in one table.
//
//   AdminApi api({.snapshot = [&] { return loop.snapshot(); },
//                 .order = [&](auto order) { return loop.Order(std::move(order)); },
//                 .objects = transport},
//                clock);
//   AdminAccess access(callers.access(), callers.audit(), clock, seed, api.routes());
//   api.AddTo(server, access);
//
// docs/formats/admin-api.md describes it for people, GET /v1/openapi.json for machines.
//
// Scope: putting the parts together.
//
// Thread safety: routes() and AddTo before the server starts; handlers run on any thread.

#pragma once

#include "controller/admin/admin.h"
#include "controller/admin/admin_access.h"
#include "controller/admin/block_routes.h"
#include "controller/admin/calendar_routes.h"
#include "controller/admin/cordon_routes.h"
#include "controller/admin/decision_routes.h"
#include "controller/admin/defragmentation_routes.h"
#include "controller/admin/gang_changes.h"
#include "controller/admin/placement_routes.h"
#include "controller/admin/promise_routes.h"
#include "controller/admin/queue_routes.h"
#include "controller/admin/route_table.h"
#include "controller/admin/usage_routes.h"
#include "controller/admin/why_route.h"
#include "controller/reserve/block_time.h"
#include "lib/base/clock.h"
#include "lib/kube/transport.h"
#include "lib/rest/server.h"

namespace tahoma::controller {

class AdminApi {
 public:
  // All must outlive it. `objects` reaches the Kubernetes API, where everything that is not a
  // Capacity Block is changed.
  struct Sources {
    Admin::TakeSnapshot snapshot;
    BlockRoutes::SendOrder order;
    kube::Transport& objects;
    BlockTime block_time = {};  // what Capacity Blocks live by
  };
  // `clock`, the wall's, must outlive it.
  AdminApi(Sources sources, const Clock& clock);
  AdminApi(const AdminApi&) = delete;
  AdminApi& operator=(const AdminApi&) = delete;

  // Further routes may be added to it.
  RouteTable& routes() { return routes_; }
  // It and `access` must outlive the server.
  void AddTo(rest::Server& server, AdminAccess& access) const;

 private:
  const BlockClock block_clock_;
  RouteTable routes_;
  Admin fleet_;
  BlockRoutes blocks_;
  CalendarRoutes calendar_;
  DecisionRoutes decisions_;
  PlacementRoutes placements_;
  UsageRoutes usage_;
  QueueRoutes queues_;
  PromiseRoutes promises_;
  WhyRoute why_;
  GangChanges gang_changes_;
  CordonRoutes cordons_;
  DefragmentationRoutes moves_;
};

}  // namespace tahoma::controller

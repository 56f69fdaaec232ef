// The route that simulates a gang: its place, its speed there, and its earliest start. A simulation
// reserves nothing.
//
// One planner answers the requests in turn, and remembers the fleet from request to request. When
// too many requests wait, the next request is told to come again.
//
// Scope: request and answer as JSON. core/forecast/what_if.h computes the answer.
//
// Thread safety: any thread.

#pragma once

#include <atomic>
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

class PlacementRoutes {
 public:
  using TakeSnapshot = std::function<std::shared_ptr<const Snapshot>()>;
  // The most requests that are answered or wait at one time.
  static constexpr int kAskingMost = 8;

  // `clock` must outlive the PlacementRoutes.
  PlacementRoutes(TakeSnapshot take, const Clock& clock) : take_(std::move(take)), clock_(clock) {}

  // `this` must outlive the routes.
  void AddRoutes(RouteTable& routes);

  rest::Response Simulate(const rest::Request& request);

 private:
  const TakeSnapshot take_;
  const Clock& clock_;
  std::atomic<int> asking_ = 0;
  Mutex mutex_;
  WhatIf what_if_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::controller

// The route that answers where a gang would go, how fast it would be there, and when at the
// earliest: nothing is reserved by asking.
//
// Questions are answered one after the other, by one planner, which remembers the fleet from one to
// the next; when too many wait, the next is told to come again.
//
// Scope: the question and the answer as JSON. What the answer is: core/forecast/what_if.h.
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
  // The questions that are answered or wait at one time.
  static constexpr int kAskingMost = 8;

  // `clock` must outlive it.
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

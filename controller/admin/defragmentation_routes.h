// The routes that move gangs so that a place comes free: a plan, the objects, and their abort.
//
// A plan is made of the newest snapshot and changes nothing. Moves are made by the core, for an
// object Defragmentation, which these routes make, show and abort. One planner answers the
// questions in turn; when too many wait, the next is told to come again.
//
// Scope: requests and answers as JSON. core/forecast/move_question.h plans.
//
// Thread safety: any thread.

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "controller/admin/route_table.h"
#include "controller/core/forecast/move_question.h"
#include "controller/core/snapshot.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/kube/transport.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

class DefragmentationRoutes {
 public:
  using TakeSnapshot = std::function<std::shared_ptr<const Snapshot>()>;
  // The most questions that are answered or wait at one time.
  static constexpr int kAskingMost = 4;

  // `api` and `clock` must outlive it.
  DefragmentationRoutes(TakeSnapshot take, kube::Transport& api, const Clock& clock)
      : take_(std::move(take)), api_(api), clock_(clock) {}

  // `this` must outlive the routes.
  void AddRoutes(RouteTable& routes);

 private:
  rest::Response Plan(const rest::Request& request);
  rest::Response List() const;
  rest::Response Create(const rest::Request& request) const;
  rest::Response Abort(const rest::Request& request) const;

  const TakeSnapshot take_;
  kube::Transport& api_;
  const Clock& clock_;
  std::atomic<int> asking_ = 0;
  Mutex mutex_;
  MoveQuestion question_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::controller

// The promises over REST: whose hardware is whose, from when until when.
//
// Scope: output. Who is promised hardware: core/queue/promises.h.
//
// Thread safety: any thread.

#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "controller/admin/route_table.h"
#include "controller/admin/schema.h"
#include "controller/core/snapshot.h"
#include "lib/base/json_fwd.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

Schema PromiseSchema();
nlohmann::ordered_json PromiseRow(const Snapshot& snapshot, const Promise& promise);
// Returns the gang's promise; nullptr without one.
const Promise* PromiseTo(const Snapshot& snapshot, const GangRef& gang);

class PromiseRoutes {
 public:
  using TakeSnapshot = std::function<std::shared_ptr<const Snapshot>()>;

  explicit PromiseRoutes(TakeSnapshot take) : take_(std::move(take)) {}

  // `this` must outlive the routes.
  void AddRoutes(RouteTable& routes);

  rest::Response List(const rest::Request& request) const;

 private:
  const TakeSnapshot take_;
};

}  // namespace tahoma::controller

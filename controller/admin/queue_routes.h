// The queues over REST and as metrics: shares, chips, gangs in the order of service.
//
//   QueueRoutes queues(take);
//   queues.AddRoutes(routes);                              // GET /v1/queues, …
//   // tahoma_queue_waiting_gangs{queue="research"}
//   AddQueueMetrics(metrics, [&] { return loop.snapshot(); });
//
// Scope: output. Numbers and places are those of the snapshot.
//
// Thread safety: any thread.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "controller/admin/route_table.h"
#include "controller/core/snapshot.h"
#include "controller/share/queue_view.h"
#include "lib/base/json_fwd.h"
#include "lib/rest/message.h"
#include "lib/rest/metrics.h"

namespace tahoma::controller {

// Returns a queue as the routes show it, by the schema Queue.
nlohmann::ordered_json QueueRow(const QueueView& view);

class QueueRoutes {
 public:
  using TakeSnapshot = std::function<std::shared_ptr<const Snapshot>()>;

  explicit QueueRoutes(TakeSnapshot take) : take_(std::move(take)) {}

  // `this` must outlive the routes.
  void AddRoutes(RouteTable& routes);

  rest::Response List(const rest::Request& request) const;
  rest::Response Show(const rest::Request& request) const;
  rest::Response Gangs(const rest::Request& request) const;

 private:
  const TakeSnapshot take_;
};

// The metrics are those of the first kMeteredQueues queues by name: labels must stay bounded.
inline constexpr std::size_t kMeteredQueues = 1000;
void AddQueueMetrics(rest::Metrics& metrics, QueueRoutes::TakeSnapshot take);

}  // namespace tahoma::controller

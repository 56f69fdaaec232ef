// The routes that take hardware out of service and back: nodes, UltraServers and single chips.
//
// A cordon is written on the Node, where kubectl shows it and the next leader reads it: a node's as
// spec.unschedulable, as `kubectl cordon` does, a chip's as the annotation kCordonedChips. A host
// with a cordon is not healthy: it is neither sold nor delivered. A cordon that would break the
// promise of a block is refused, with the blocks named, unless the cordon is forced (promises.h).
//
// A drain cordons, and evicts every pod of the gangs there, also the pods on other nodes: a gang is
// whole or absent. A repeated drain answers with the pods that are left.
//
// Scope: requests to the Kubernetes API.
//
// Thread safety: any thread.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "controller/admin/route_table.h"
#include "controller/core/snapshot.h"
#include "lib/base/clock.h"
#include "lib/kube/transport.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

class CordonRoutes {
 public:
  using TakeSnapshot = std::function<std::shared_ptr<const Snapshot>()>;
  // The pods that one request evicts, and the rest of the last gang's.
  static constexpr std::size_t kPodsMost = 1024;

  // `api` and `clock`, that of Capacity Blocks, must outlive it.
  CordonRoutes(TakeSnapshot take, kube::Transport& api, const Clock& clock)
      : take_(std::move(take)), api_(api), clock_(clock) {}

  // `this` must outlive the routes.
  void AddRoutes(RouteTable& routes);

 private:
  enum class Action { kCordon, kUncordon, kDrain };
  enum class Kind { kNode, kUltraServer, kChip };
  struct Target;

  void AddRoute(RouteTable& routes, Kind kind, Action action);
  rest::Response Carry(Kind kind, Action action, const rest::Request& request) const;
  absl::Status Mark(const std::string& node, const Target& target, bool cordoned) const;

  const TakeSnapshot take_;
  kube::Transport& api_;
  const Clock& clock_;
};

}  // namespace tahoma::controller

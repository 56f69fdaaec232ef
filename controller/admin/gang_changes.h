// The routes that change gangs: their priority, and their end.
//
// The routes change the Gang object: kubectl shows the change, and the next leader acts on it.
// Cancel deletes the Gang first, so that no more of its pods are placed, then the pods, with their
// grace. Pods that a Job makes again wait for a Gang that no longer exists.
//
// Scope: requests to the Kubernetes API.
//
// Thread safety: any thread.

#pragma once

#include "controller/admin/route_table.h"
#include "lib/kube/transport.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

class GangChanges {
 public:
  // `api` must outlive the GangChanges.
  explicit GangChanges(kube::Transport& api) : api_(api) {}

  // `this` must outlive the routes.
  void AddRoutes(RouteTable& routes);

  rest::Response ShowSpec(const rest::Request& request) const;
  rest::Response PatchSpec(const rest::Request& request) const;
  rest::Response Cancel(const rest::Request& request) const;

 private:
  kube::Transport& api_;
};

}  // namespace tahoma::controller

// The routes that change gangs: their priority, and their end.
//
// What is changed is the Gang, so that kubectl shows it and whoever leads next acts on it. To
// cancel a gang is to delete it: first the Gang, so that nothing of it is placed any more, then its
// pods, with their grace. Pods that a Job makes again wait for a Gang that is not there.
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
  // `api` must outlive it.
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

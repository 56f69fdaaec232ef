// Access to the admin API, by the same identities and roles as the Kubernetes API's.
//
//   AdminAccess access(callers.access(), callers.audit(), clock, seed, routes);
//   server.SetGate([&](rest::Request& head) { return access.Admit(head); });
//
// A request is authorized as its route says (RouteTable::AttributesOf): as a read of the objects
// that it shows, for which role view suffices, in its own namespaces, or as a change of those that
// it changes. Every other path but /metrics is for role admin only, and nothing is for nodes.
// Changes, and what is for admins only, are in the audit: refusals by Admit, calls by the Audited
// handler of the route.
//
// With ClusterAccess a token that the identities do not know is the cluster's affair: the API
// server says whose it is, and whether he may get the path as it was sent ("/v1/gangs/a/b").
// Nothing is open then, and without its answer the request is answered 503.
//
// Thread safety: any thread.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "controller/access/access_control.h"
#include "controller/access/attributes.h"
#include "controller/access/audit.h"
#include "controller/access/cluster_access.h"
#include "controller/admin/route_table.h"
#include "lib/base/clock.h"
#include "lib/rest/message.h"
#include "lib/rest/server.h"

namespace tahoma::controller {

class AdminAccess {
 public:
  // `clock`, `routes` and `cluster` must outlive it; null: nobody asks the cluster.
  AdminAccess(std::shared_ptr<const AccessControl> access, AuditSink audit, const Clock& clock,
              std::uint64_t seed, const RouteTable& routes, ClusterAccess* cluster = nullptr)
      : access_(std::move(access)),
        auditor_(std::move(audit), clock, seed),
        routes_(routes),
        cluster_(cluster) {}

  // Notes who calls; a problem (401, 403, 503) for whoever may not.
  std::optional<rest::Response> Admit(rest::Request& head);
  // `handler`, with a line in the audit about each call: for every route that changes something or
  // is for admins only.
  // A stream's line has the status with which it begins. 503 while a required line cannot be
  // written.
  rest::Handler Audited(rest::Handler handler);

 private:
  // Decides once more: a permission may have been withdrawn since the gate checked it.
  AccessDecision Authorize(const rest::Request& request, const Attributes& wanted);
  std::optional<rest::Response> AdmitByCluster(rest::Request& head);
  rest::Response Forbid(const rest::Request& head, const Attributes& denied);

  const std::shared_ptr<const AccessControl> access_;
  Auditor auditor_;
  const RouteTable& routes_;
  ClusterAccess* const cluster_;
};

}  // namespace tahoma::controller

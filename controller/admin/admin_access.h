// Access to the admin API, by the same identities and roles as the Kubernetes API's.
//
//   AdminAccess access(callers.access(), callers.audit(), clock, seed, routes);
//   server.SetGate([&](rest::Request& head) { return access.Admit(head); });
//
// A request is authorized by its route (RouteTable::AttributesOf): as a read of the objects shown,
// for which role view suffices in its own namespaces, or as a change of the objects changed. Every
// other path but /metrics is for role admin only, and no path is for nodes. Changes and requests
// for admins only are in the audit: Admit writes refusals, the route's Audited handler writes
// calls.
//
// With a ClusterAccess, the API server decides about tokens that the identities do not know: it
// names the user, and authorizes the path as sent ("/v1/gangs/a/b"). Nothing is open in this case,
// and without the API server's answer the request is answered 503.
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
  // `clock`, `routes` and `cluster` must outlive the AdminAccess; null: the cluster is not asked.
  AdminAccess(std::shared_ptr<const AccessControl> access, AuditSink audit, const Clock& clock,
              std::uint64_t seed, const RouteTable& routes, ClusterAccess* cluster = nullptr)
      : access_(std::move(access)),
        auditor_(std::move(audit), clock, seed),
        routes_(routes),
        cluster_(cluster) {}

  // Notes the caller; returns a problem (401, 403, 503) for a caller who may not go on.
  std::optional<rest::Response> Admit(rest::Request& head);
  // Wraps `handler`: each call leaves a line in the audit. For every route that changes objects or
  // is for admins only. A stream's line has the status with which the stream begins. 503 while a
  // required line cannot be written.
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

// A sim-node's own REST API, with which people and tests inject faults.
//
//   InstallAdminRoutes(server, metrics, live);
//
// Then the server serves:
//
//   GET  /v1/state                          the instance: chips, links, claims (without tokens)
//   GET  /v1/links                          how full each link was last (link_counters.h), as text
//   POST /v1/chips/{n}/break                {"reason": "hbm-uncorrectable"}
//   POST /v1/chips/{n}/repair
//   POST /v1/links/{chip}/{port}/down       port: x+ x- y+ y- z+ z-
//   POST /v1/links/{chip}/{port}/up         repairs it, whatever it has
//   POST /v1/links/{chip}/{port}/degrade    {"permille": 250}, of the link's rate
//   POST /v1/links/{chip}/{port}/lose       {"lossPpm": 10000}, packets of a million
//   POST /v1/links/{chip}/{port}/flap       {"periodUs": 1000, "downUs": 50}, of virtual time
//   POST /v1/efa/{chip}/down                its network card
//   POST /v1/efa/{chip}/up
//   POST /v1/ultraserver/elect              an UltraServer election on demand
//   POST /v1/ultraserver/mode               {"mode": "X2V"}: X4, X2H, X2V or X1
//
// A POST answers with the state after the change. Errors are RFC 9457 problems. lib/rest adds
// /metrics and /healthz.
//
// Scope: translation between HTTP and LiveInstance. It shows no token and changes no claim.
//
// Thread safety: InstallAdminRoutes is called before the server starts.

#pragma once

#include "lib/rest/metrics.h"
#include "lib/rest/server.h"
#include "sim-node/serve/live_instance.h"
#include "sim-node/serve/node_election.h"

namespace tahoma::sim {

// `live` and `election` must outlive the server and the metrics. Without an election its routes
// answer that there is none.
void InstallAdminRoutes(rest::Server& server, rest::Metrics& metrics, LiveInstance& live,
                        NodeElection* election = nullptr);

// Returns the body of GET /v1/state.
std::string StateJson(const Instance& instance);

}  // namespace tahoma::sim

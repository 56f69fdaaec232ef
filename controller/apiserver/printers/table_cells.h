// The cells of built-in kinds, as a real API server's printers compute them.
//
// Source of the words: Kubernetes' printers for core, resource.k8s.io and coordination.k8s.io.
//
// Thread safety: pure functions.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/schema/kind.h"
#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

std::vector<Json> BuiltInCells(const Kind& kind, const Json& object, WallTime now);

// Workloads and what goes with them (workload_cells.cc).
std::vector<Json> DeploymentCells(const Json& object, WallTime now);
std::vector<Json> ReplicaSetCells(const Json& object, WallTime now);
std::vector<Json> StatefulSetCells(const Json& object, WallTime now);
std::vector<Json> DaemonSetCells(const Json& object, WallTime now);
std::vector<Json> ControllerRevisionCells(const Json& object, WallTime now);
std::vector<Json> JobCells(const Json& object, WallTime now);
std::vector<Json> PodDisruptionBudgetCells(const Json& object, WallTime now);
std::vector<Json> EndpointsCells(const Json& object, WallTime now);

// Age of an RFC 3339 time at `now`; "<unknown>" when there is none.
std::string AgeOf(const Json& time, WallTime now);

}  // namespace tahoma::controller::apiserver

// The writes for NeuronUltraServerWorkloads as requests to a Kubernetes API server: the claim
// template and the status (core/facts/ultraserver_workload.h).
//
// Thread safety: pure functions.

#pragma once

#include "controller/core/writes/api_write.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

kube::Request RenderClaimTemplate(const ClaimTemplateCreation& write);
kube::Request RenderWorkloadStatus(const WorkloadStatusWrite& write);

}  // namespace tahoma::controller

// Evicts a pod as the subresource pods/eviction does: after the pod's PodDisruptionBudget was
// asked.
//
// A pod that is pending, has ended or is being deleted is evicted in any case. A pod that is not
// ready is, if its budget says so (unhealthyPodEvictionPolicy), without being counted.
//
// Fails with 429 when the pod's budget allows no eviction, with 500 when the pod has several
// budgets, and as a deletion does. Source: kubernetes pkg/registry/core/pod/storage/eviction.go.
//
// Scope: the eviction. The controllers count how many pods may go.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/status.h>

#include <string>

#include "controller/apiserver/request/api_context.h"
#include "controller/apiserver/verbs/delete_verbs.h"

namespace tahoma::controller::apiserver {

// Notes the eviction in the budget's status and in the pod's condition DisruptionTarget, and
// deletes the pod; a dry run only says whether all that would be done.
absl::Status EvictPod(const ApiContext& context, const Kind& pods, const std::string& key,
                      const DeleteOptions& options);

}  // namespace tahoma::controller::apiserver

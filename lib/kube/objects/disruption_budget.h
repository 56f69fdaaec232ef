// A PodDisruptionBudget: how many pods may be ended now, of those that the selector matches.
//
//   TAHOMA_ASSIGN_OR_RETURN(const DisruptionBudget budget, ParseDisruptionBudget(object));
//   if (budget.Guards(ns, labels)) left -= 1;
//
// Source: kubernetes pkg/registry/core/pod/storage/eviction.go; policy/v1.
//
// Thread safety: values; pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "lib/base/json_fwd.h"
#include "lib/kube/objects/metadata.h"
#include "lib/kube/selector.h"

namespace tahoma::kube {

struct DisruptionBudget {
  ObjectMeta metadata;
  // Without a selector no pod is guarded, with an empty one all pods of the namespace.
  bool guards_none = false;
  LabelSelector selector;
  // status.disruptionsAllowed; 0 while the status is older than the spec.
  std::int64_t allowed = 0;

  // Whether the budget is for a pod of that namespace with those labels.
  bool Guards(const std::string& ns, const Labels& labels) const;
};

// kInvalidArgument for an object without the fields' types or with a selector that Kubernetes
// refuses.
absl::StatusOr<DisruptionBudget> ParseDisruptionBudget(const Json& object);

}  // namespace tahoma::kube

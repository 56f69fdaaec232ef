// Kubernetes' admission of priorities (its plugin Priority): pods get those of their classes, and
// one class at most is the default.
//
//   TAHOMA_RETURN_IF_ERROR(AdmitPriority(context, kind, object));   // 403: no such class
//
// Thread safety: from any thread.

#pragma once

#include <absl/status/status.h>

#include "controller/apiserver/request/api_context.h"
#include "controller/apiserver/storage/object_store.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

inline const ResourceName kPriorityClasses = {"scheduling.k8s.io", "priorityclasses"};

// Gives a new pod the priority, the policy and, when it names none, the name of its class; does
// nothing to other kinds.
absl::Status AdmitPriority(const ApiContext& context, const Kind& kind, Json& object);

// Refuses a PriorityClass that would be a second default; does not look at other kinds.
absl::Status CheckDefaultClass(const ApiContext& context, const Kind& kind, const Json& object);

}  // namespace tahoma::controller::apiserver

// The componentstatuses of this server: the checks of /readyz as objects.
//
//   ComponentStatuses(probes);      // kubectl get componentstatuses
//
// They are asked when somebody reads them and are stored nowhere, so that they also tell of a store
// that takes no writes. The form is that of core/v1 ComponentStatus: one condition, Healthy.
//
// Thread safety: any thread.

#pragma once

#include <vector>

#include "controller/apiserver/storage/object.h"
#include "lib/rest/probes.h"

namespace tahoma::controller::apiserver {

// As of now, by name. Without a version: they have no history.
std::vector<ObjectPtr> ComponentStatuses(const rest::Probes& probes);

}  // namespace tahoma::controller::apiserver

// The componentstatuses of this server: the checks of /readyz as objects.
//
//   ComponentStatuses(probes);      // kubectl get componentstatuses
//
// The checks run at each read, and nothing is stored: the objects also show a store that takes no
// writes. The form is core/v1 ComponentStatus: one condition, Healthy.
//
// Thread safety: any thread.

#pragma once

#include <vector>

#include "controller/apiserver/storage/object.h"
#include "lib/rest/probes.h"

namespace tahoma::controller::apiserver {

// Returns the present objects, by name. Without a version: the objects have no history.
std::vector<ObjectPtr> ComponentStatuses(const rest::Probes& probes);

}  // namespace tahoma::controller::apiserver

// The status of a MaintenanceWindow as a patch.
//
// Thread safety: pure functions.

#pragma once

#include "controller/core/writes/api_write.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

kube::Request RenderWindowStatus(const WindowStatusWrite& write);

}  // namespace tahoma::controller

// The status of a Queue as a patch.
//
// Thread safety: pure functions.

#pragma once

#include "controller/core/writes/api_write.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

kube::Request RenderQueueStatus(const QueueStatusWrite& write);

}  // namespace tahoma::controller

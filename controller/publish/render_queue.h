// The status of a Queue, and of a QueueCalendar, as a patch.
//
// Thread safety: pure functions.

#pragma once

#include "controller/core/writes/api_write.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

kube::Request RenderQueueCalendarStatus(const QueueCalendarStatusWrite& write);
kube::Request RenderQueueStatus(const QueueStatusWrite& write);

}  // namespace tahoma::controller

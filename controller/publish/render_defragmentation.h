// The status of a Defragmentation as an API request.
//
// Thread safety: a pure function.

#pragma once

#include "controller/core/writes/api_write.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

kube::Request RenderDefragmentationStatus(const DefragmentationStatusWrite& write);

}  // namespace tahoma::controller

// Writes about Capacity Blocks as requests: the object, its finalizer, its status.
//
// The status shows a block in EC2's words (docs/formats/capacity-blocks.md), and has the journal's
// entry as `record`, from which a controller without a journal takes the block over.
//
// Thread safety: pure functions.

#pragma once

#include "controller/core/writes/api_write.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

// Makes the CapacityBlock of a block that was bought by another API.
kube::Request RenderBlockCreation(const BlockCreation& write);
// Adds the finalizer to a block that holds capacity, and takes it from one that does not.
kube::Request RenderBlockFinalizer(const BlockFinalizerWrite& write);
kube::Request RenderBlockStatus(const BlockStatusWrite& write);

// Returns the status of a CapacityBlock.
Json BlockStatusJson(const BlockView& view);

}  // namespace tahoma::controller

// Tells which Capacity Blocks suffer when a host is taken out of service.
//
// A block suffers when it has the host, or has chosen it, and when its pool would then have fewer
// hosts, with the spares, than are booked and occupied on one of the block's days.
//
// Scope: pure functions of a snapshot. They look at every block once.
//
// Thread safety: pure functions.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controller/core/snapshot.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

struct HurtBlock {
  std::shared_ptr<const Block> block;
  std::string why;  // a sentence
};

// Of a host that is already not healthy only its loss to those that have it counts.
std::vector<HurtBlock> HurtByCordon(const Snapshot& snapshot, DomainId host, WallTime now);
// Returns the blocks whose gangs may run on the host now.
std::vector<HurtBlock> HurtByDrain(const Snapshot& snapshot, DomainId host, WallTime now);

}  // namespace tahoma::controller

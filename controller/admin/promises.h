// Finds the Capacity Blocks that suffer when a host is taken out of service.
//
// A block suffers when it has or has chosen the host, and when its pool would then have fewer
// hosts, with the spares, than are booked and occupied on a day of the block.
//
// Scope: pure functions of a snapshot. Each call looks at every block once.
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

// For an unhealthy host, returns only the blocks that have the host: the pool's count does not
// change.
std::vector<HurtBlock> HurtByCordon(const Snapshot& snapshot, DomainId host, WallTime now);
// Returns the blocks whose gangs may run on the host now.
std::vector<HurtBlock> HurtByDrain(const Snapshot& snapshot, DomainId host, WallTime now);

}  // namespace tahoma::controller

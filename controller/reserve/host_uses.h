// Which hosts of a pool belong to blocks now, and from when on the other hosts are kept for blocks.
//
// A block is bound to hosts shortly before its start. Until then as many hosts as it needs are
// kept, and no gang is placed there that would still run at the block's start. Hosts are kept in
// this order: hosts that another block has earlier, hosts whose gangs end before the start, idle
// hosts. Every purchase may change the chosen hosts, but not how many are left for gangs.
//
// Spares take the place of hosts that fail. Spares are kept idle as far as blocks are sold; only
// preemptible gangs may use them.
//
// Scope: a proposal, for the placement of gangs. HostTable chooses the hosts that a block gets.
//
// Thread safety: a pure function.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/reserve/block.h"
#include "controller/reserve/host_table.h"

namespace tahoma::controller {

// Returns the use of every host of the pool. `blocks` holds capacity in the pool. Costs O((hosts +
// kept hosts) x log hosts).
std::map<std::string, BlockUse> PlanUses(const HostTable& hosts, const Pool& pool,
                                         std::vector<const Block*> blocks, int spares);

}  // namespace tahoma::controller

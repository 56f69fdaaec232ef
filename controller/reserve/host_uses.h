// Which hosts of a pool blocks have now, and from when on others are kept for them.
//
// A block is bound to hosts only shortly before its start. Until then as many hosts as it needs are
// kept for it, so that nothing is placed on them that would be in its place: those that other
// blocks have or will have before, then those that are in use until then, then idle ones. Which
// they are may change with every block that is bought; how many are left for others does not.
//
// Spares take the place of hosts that fail. They are kept idle as far as blocks are sold; who can
// be ended may use them.
//
// Scope: a proposal, for who places gangs. What a block gets is chosen by HostTable.
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

// Returns the use of every host of the pool. `blocks` are those that hold capacity in it. Costs
// O((hosts + hosts that are kept) x log hosts).
std::map<std::string, BlockUse> PlanUses(const HostTable& hosts, const Pool& pool,
                                         std::vector<const Block*> blocks, int spares);

}  // namespace tahoma::controller

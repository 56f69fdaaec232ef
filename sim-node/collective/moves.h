// Operations that move buffers without combining them, as steps.
//
//   all_to_all  block s of rank r's buffer becomes block r of rank s's result
//   sendrecv    rank r's buffer becomes the result of rank r + 1, the last rank's that of the first
//   permute     rank k of a chip sends its buffer to rank k of the next chip on a ring of links
//   broadcast   rank 0's buffer becomes everybody's
//
//   TAHOMA_ASSIGN_OR_RETURN(const Exchange exchange, ExchangeOf(request, members, set, links));
//
// The first three are one step of messages on their dimension-order routes: on every box with sides
// 1, 2 and 4 that loads the links of an all-to-all evenly, so no schedule of steps is faster
// (reference: torus-and-links 2.1). A broadcast is one step to everybody (mesh), or each chip gets
// a block, directly (ring) or by halving (rdh), and an all-gather spreads them: twice the bound.
// Trees (trees.h) need only start-up more than the bound.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "sim-node/collective/algorithms.h"
#include "sim-node/collective/chip_set.h"
#include "sim-node/collective/request.h"
#include "sim-node/collective/schedule.h"
#include "sim-node/link/torus_links.h"

namespace tahoma::sim {

struct Exchange {
  Step step;
  // Send-receive and permute: whose buffer each rank gets. Empty for all-to-all and parcels.
  std::vector<int> sources;
};

// `request` must be an exchange, `set` the chips of `members`. Buffers lie as ChipBufferBytes says.
// An all-to-all moves as many elements of each buffer as divide among the ranks. A request with
// parcels moves these; their ranks must be those of the members.
// kInvalidArgument: fewer elements than ranks (all-to-all), chips with different numbers of ranks
// (permute). kFailedPrecondition: the chips are not on a ring of links that are up (permute).
absl::StatusOr<Exchange> ExchangeOf(const Request& request, const std::vector<Member>& members,
                                    const ChipSet& set, const TorusLinks& links);

// The same for chips anywhere: `ring` is the way of a permute, each member's chip once.
absl::StatusOr<Exchange> ExchangeAlong(const Request& request, const std::vector<Member>& members,
                                       const std::vector<torus::ChipIndex>& ring);

// From the first chip of the set to all. kRdh needs set.box().
std::vector<Step> BroadcastSteps(Algorithm algorithm, const ChipSet& set, const TorusLinks& links,
                                 const Layout& layout);

}  // namespace tahoma::sim

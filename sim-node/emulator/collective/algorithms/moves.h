// Operations that move buffers without combining them, as steps.
//
//   TAHOMA_ASSIGN_OR_RETURN(const Exchange exchange, ExchangeOf(request, members, set, links));
//
// They are:
//
//   all_to_all  block s of rank r's buffer becomes block r of rank s's result
//   sendrecv    rank r's buffer becomes the result of rank r + 1, the last rank's that of the first
//   permute     rank k of a chip sends its buffer to rank k of the next chip on a ring of links, or
//               round chips that have no such ring, on a path that is not much longer; another k
//               takes another ring or the other direction, as long as there are some
//   broadcast   rank 0's buffer becomes everybody's
//
// The first three are one step of messages, each whole on one route: on every box with sides 1, 2
// and 4 that loads the links of an all-to-all evenly, so no schedule of steps is faster
// (docs/reference/collectives.md#lower-bounds); on other sets and around damage it does not. A
// broadcast is one step to everybody, or each chip gets a block, directly or by halving (rdh), and
// an all-gather spreads them: twice the bound.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "sim-node/emulator/collective/algorithms/algorithms.h"
#include "sim-node/emulator/collective/algorithms/chip_set.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

struct Exchange {
  Step step;
  // Send-receive and permute: whose buffer each rank gets. Empty for all-to-all and for a request
  // that lists its blocks.
  std::vector<int> sources;
};

// `request` must be an exchange, `set` the chips of `members`. Buffers lie as ChipBufferBytes says.
// An all-to-all moves as many elements of each buffer as divide among the ranks. A request that
// lists its blocks moves these; their ranks must be those of the members. kInvalidArgument: fewer
// elements than ranks (all-to-all), chips with different numbers of ranks (permute).
absl::StatusOr<Exchange> ExchangeOf(const Request& request, const std::vector<Member>& members,
                                    const ChipSet& set, const TorusLinks& links);

// The same for chips anywhere: `paths` are those of a permute, for each rank of a chip one that has
// each member's chip once.
absl::StatusOr<Exchange> ExchangeAlong(const Request& request, const std::vector<Member>& members,
                                       const std::vector<std::vector<torus::ChipIndex>>& paths);

// Returns the bytes that each of so many ranks sends every one in an all-to-all; kInvalidArgument
// as ExchangeOf.
absl::StatusOr<std::uint64_t> AllToAllBlock(const Request& request, std::size_t ranks);
// Returns the sends of an all-to-all among its first members when blocks have so many bytes.
Step AllToAllAmong(const Request& request, const std::vector<Member>& members, std::uint64_t block);

// Returns a path for each rank of a chip: one ring after the other, then each in the other
// direction, and so on. There must be a ring.
std::vector<std::vector<torus::ChipIndex>> PathsOf(
    const std::vector<std::vector<torus::ChipIndex>>& rings, int ranks);

// Returns the steps with which a broadcast begins: the first chip of the set sends its whole buffer
// to each, which is all of it; or to each its block, which an all-gather by the algorithm then
// spreads. kRdh needs set.box().
std::vector<Step> ScatterFromRoot(Algorithm algorithm, const ChipSet& set, const TorusLinks& links,
                                  const Layout& layout, bool whole);

}  // namespace tahoma::sim

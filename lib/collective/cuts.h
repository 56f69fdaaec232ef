// Finds the part of a set of chips that its links serve worst, and the physical bound that follows.
//
//   const Cut worst = WorstGatherCut(links, members, through);
//   // no all-gather of n blocks of b bytes takes less than worst.blocks * b / worst.rate
//   LowerBound(Operation::kAllReduce, members, root, 1 << 30, links);
//
// Whatever route data takes, bytes that have to leave a part of the chips cross the links that
// leave it. The part with the most blocks for its links' rate bounds all-gather, and trees that
// reach the bound exist (docs/reference/torus.md#what-a-set-of-chips-can-carry). It is found
// exactly, by maximum flows with a parametric search (cuts.cc says how); a search through all parts
// would take 2^64 steps. For exchanges the worst part is hard to find: the search starts from
// single chips and slabs and moves chips over the border one by one. A test compares the result
// with a search through all parts of a 4x4, and elsewhere with routes: little can be left to find.
//
// Scope: bytes only; start-up costs and the chips' own memory come on top.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <span>

#include "lib/collective/domain_links.h"
#include "lib/collective/operation.h"

namespace tahoma::collective {

// A cut: `blocks` blocks, one of each member, must cross links of the summed rate `rate`.
struct Cut {
  std::uint64_t blocks = 0;
  std::uint64_t rate = 1;  // bytes per second; 0 = there is no route

  // Whether it takes longer than the other.
  bool WorseThan(const Cut& other) const {
    return static_cast<Wide>(blocks) * other.rate > static_cast<Wide>(other.blocks) * rate;
  }
  // Whether it takes at most one of so many parts longer than the other.
  bool HardlyWorseThan(const Cut& other, std::uint64_t parts) const {
    return static_cast<Wide>(blocks) * other.rate * parts <=
           static_cast<Wide>(other.blocks) * rate * (parts + 1);
  }
};

// Chips that messages between members may cross: the members themselves when they hang together, so
// that tenants stay apart even around a broken link; otherwise all of the topology domain.
torus::ChipMask ThroughOf(const DomainLinks& links, torus::ChipMask members);

// Members outside of a part that some member is not in, for the rate of the links that enter it.
Cut WorstGatherCut(const DomainLinks& links, torus::ChipMask members, torus::ChipMask through);
// Members inside of a part, for the rate of the links that enter it.
Cut WorstScatterCut(const DomainLinks& links, torus::ChipMask members, torus::ChipMask through);
// Returns a cut of as many blocks as members, with the least rate at which `root` reaches a member.
Cut WorstBroadcastCut(const DomainLinks& links, torus::ChipMask members, torus::ChipMask through,
                      int root);
// Returns what bounds an all-reduce: what a part contributes leaves it and the result enters it,
// and members need the links of the worst partition (partition.h). Exact when the members hang
// together and both directions of each cable have one rate.
Cut WorstReductionCut(const DomainLinks& links, torus::ChipMask members, torus::ChipMask through);
// The worst of some parts, and of all links together: each message takes as many of them as its
// ends are apart.
Cut WorstExchangeCut(const DomainLinks& links, torus::ChipMask members, torus::ChipMask through);
// The same when each chip of the order sends one block to the next, the last to the first.
Cut WorstShiftCut(const DomainLinks& links, std::span<const std::uint8_t> order,
                  torus::ChipMask through);

// No algorithm is faster. `bytes` of one rank on each chip; for all-gather, of everything gathered.
// Zero for one chip; Picoseconds::max() when links that are down cut chips off. For send-receive
// and permute the bound is that of a chip's buffer on all links that enter the chip.
Picoseconds LowerBound(Operation operation, torus::ChipMask members, torus::ChipIndex root,
                       std::uint64_t bytes, const DomainLinks& links);

}  // namespace tahoma::collective

// Finds how links bound an all-reduce, and which chip should sum up how much of it.
//
// In an all-reduce each byte of the result needs p - 1 transfers between p parts of the chips to be
// summed up and as many to be spread. So the partition with the most parts less one for the rate of
// the links between its parts bounds it; packed spanning trees reach that bound (Tutte 1961,
// Nash-Williams 1961; docs/reference/torus.md#all-reduce-on-damaged-sets).
//
// A reduce-scatter and an all-gather, one after the other, reach the bound on most sets, if the
// chips' shares of the buffer differ: a chip with few links then sums up much and spreads much, and
// needs the rest only once in each direction. The shares are those of the least time: no part of
// the chips has to send more than its links carry in that time.
//
// Bound and shares are minima over partitions of A * (rate over the border of a part) - B, the
// Dilworth truncation, found exactly by a chain of minimum cuts (Cunningham 1985). A and B are of
// the worst partition so far; a worse one becomes the next (Dinkelbach).
//
// Scope: bytes only. A cable whose two directions differ counts with the slower one for the shares.
//
// Thread safety: pure functions.

#pragma once

#include <array>
#include <cstdint>

#include "lib/collective/cuts.h"
#include "lib/collective/domain_links.h"

namespace tahoma::collective {

// Returns the cut of the partition of `members`, which must be two or more and joined by links
// among themselves: 2 (p - 1) blocks as large as the whole buffer (so n times as many blocks) cross
// the links between its parts, in both directions. The rate is 0 when links that are down cut
// members off.
Cut WorstPartition(const DomainLinks& links, torus::ChipMask members);

// The parts of a buffer that each chip sums up, of `whole` for all of it.
struct SumShares {
  std::array<std::uint64_t, kChipsMax> of{};
  std::uint64_t whole = 1;
  // What one phase, the reduce-scatter or the all-gather, takes with these shares.
  Cut phase;
};

// The same requirements. When chips are cut off, `phase` has rate 0 and the shares are of no use.
SumShares BestSumShares(const DomainLinks& links, torus::ChipMask members);

}  // namespace tahoma::collective

// The physical lower bound of a collective: no algorithm can be faster.
//
//   const VirtualDuration bound = LowerBound(Operation::kAllReduce, set, 1 << 30, links);
//   const double ratio = Nanoseconds(plan.times.end - plan.times.start) / Nanoseconds(bound);
//
// lib/collective/cuts.h finds the part of the set that its links serve worst.
//
// Scope: bytes only; start-up costs and the chips' own memory come on top.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <vector>

#include "sim-node/emulator/collective/algorithms/chip_set.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

// `bytes` as in Request, for one rank on each chip. Links count as they are now. Zero for one chip;
// VirtualDuration::max() when links that are down cut chips off. For send-receive and permute the
// bound is that of a chip's buffer on all links that enter the chip.
VirtualDuration LowerBound(Operation operation, const ChipSet& set, std::uint64_t bytes,
                           const TorusLinks& links);

// The same for members with any numbers of ranks. What the ranks of a chip sum up, gather or get
// alike crosses links once for all of them; what they exchange crosses once for each.
VirtualDuration LowerBound(const Request& request, const std::vector<Member>& members,
                           const TorusLinks& links);

}  // namespace tahoma::sim

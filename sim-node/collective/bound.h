// What no algorithm can beat: the physical lower bound of a collective.
//
//   const VirtualDuration bound = LowerBound(Operation::kAllReduce, set, 1 << 30, links);
//   ratio = Nanoseconds(plan.times.end - plan.times.start) / Nanoseconds(bound);
//
// Whatever way data takes, what has to cross the border of a part of the chips goes over the links
// that cross it; the worst part gives the bound (reference: torus-and-links 1.1 and 2.1). For up to
// 16 chips every part is looked at; for more, every chip and every box with sides 1, 2 and 4, among
// which the worst part of a healthy box is. All-to-all is also bound by the links' total rate,
// since every message takes at least as many links as its ends are apart.
//
// Scope: bytes only; start-up costs and the chips' own memory come on top.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>

#include "sim-node/collective/chip_set.h"
#include "sim-node/collective/request.h"
#include "sim-node/engine/virtual_time.h"
#include "sim-node/link/torus_links.h"

namespace tahoma::sim {

// `bytes` as in Request, for one rank on each chip. Links count as they are now. Zero for one chip;
// VirtualDuration::max() when links that are down cut chips off. For send-receive and permute the
// bound is that of a chip's buffer on all links that leave the chip.
VirtualDuration LowerBound(Operation operation, const ChipSet& set, std::uint64_t bytes,
                           const TorusLinks& links);

}  // namespace tahoma::sim

// The one rule for NICs that are down or slow: the choice of the NIC that serves each chip of a
// topology domain.
//
// A NIC carries all bytes that leave or enter for a chip, its own or another, or nothing. The
// number of chips of each NIC is the number with which the slowest NIC is done first; a chip that
// is not served by its own NIC takes the nearest NIC with room for another chip. Breaking a NIC
// therefore never makes the fullest NIC faster.
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <vector>

#include "lib/torus/shape.h"
#include "sim-node/emulator/collective/schedule/request.h"

namespace tahoma::sim {

// Returns for each place the place of the NIC that serves it. `rates` are the rates of the NICs, by
// place; if all are 0, each NIC serves its own chip.
std::vector<std::size_t> ProxiesOf(const std::vector<Member>& local, const std::vector<int>& rates,
                                   const torus::Shape& torus);

}  // namespace tahoma::sim

// The one rule for NICs that are down or slow: which chip's NIC serves each chip of a topology
// domain.
//
//   const std::vector<std::size_t> proxies = ProxiesOf(local, /*rates=*/{1000, 0, 1000}, torus);
//   proxies[1];      // 0: the second chip sends and receives through the first one's NIC
//
// A NIC carries all that leaves or enters for a chip, its own or another's, or nothing. NICs serve
// as many chips each as lets the slowest of them be done first; a chip that its own NIC cannot
// serve takes the nearest that serves fewer than it can. So breaking a NIC never makes the fullest
// one faster.
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <vector>

#include "lib/torus/shape.h"
#include "sim-node/emulator/collective/schedule/request.h"

namespace tahoma::sim {

// Returns for each place the one whose NIC serves it. `rates` are those of the NICs, by place; if
// all are 0, each serves its own.
std::vector<std::size_t> ProxiesOf(const std::vector<Member>& local, const std::vector<int>& rates,
                                   const torus::Shape& torus);

}  // namespace tahoma::sim

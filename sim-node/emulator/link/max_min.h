// Computes max-min fair rates of flows that share links.
//
//   // two flows over link 0, one of them also over link 1
//   MaxMinRates(paths, capacities);      // bytes per second, in the order of the flows
//
// Progressive filling (Bertsekas, Gallager, "Data Networks", 6.5.2): all rates grow together; when
// a link is full, its flows stop growing. No flow can then gain unless a slower flow loses. Integer
// arithmetic gives the same rates on every machine; a share is rounded down, and so loses less than
// one byte per second per flow.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

// `paths[i]` are the links of flow i, none twice; ids must be below capacities.size(). A flow
// without links gets kUnlimitedRate; a flow over a link without capacity gets 0. A flow may stand
// for a group of flows with the same rate, because each flow of the group has its equal at the
// other links: `counts[i][j]` is the number of flows of the group, flow i included, on link j of
// path i. Empty `counts`: each flow stands for itself.
inline constexpr std::uint64_t kUnlimitedRate = ~std::uint64_t{0};
std::vector<std::uint64_t> MaxMinRates(std::span<const std::span<const LinkId>> paths,
                                       std::span<const std::uint64_t> capacities,
                                       std::span<const std::span<const std::uint64_t>> counts = {});

}  // namespace tahoma::sim

// Computes max-min fair rates of flows that share links.
//
//   // two flows over link 0, one of them also over link 1
//   MaxMinRates(paths, capacities);      // bytes per second, in the order of the flows
//
// Progressive filling (Bertsekas, Gallager, "Data Networks", 6.5.2): all rates grow together; where
// a link fills up, its flows stop growing. No flow can then gain without a slower one losing.
// Integer arithmetic, so that every machine gets the same rates; a share is rounded down, which
// loses less than one byte per second for each flow.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

// `paths[i]` are the links of flow i, none twice; ids must be below capacities.size(). A flow
// without links gets kUnlimitedRate; one over a link without capacity gets 0.
// A flow may stand for others that have the same rate, as each of them has its equal at the other
// links: `counts[i][j]` is the number of those, itself included, that cross link j of path i.
// Empty: each for itself.
inline constexpr std::uint64_t kUnlimitedRate = ~std::uint64_t{0};
std::vector<std::uint64_t> MaxMinRates(std::span<const std::span<const LinkId>> paths,
                                       std::span<const std::uint64_t> capacities,
                                       std::span<const std::span<const std::uint64_t>> counts = {});

}  // namespace tahoma::sim

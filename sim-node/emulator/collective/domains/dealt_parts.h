// The parts of a region for which the chips of a domain answer between the domains: in proportion
// to their NICs, or those near them do what they cannot, while inside the domain each chip has an
// equal part or its own block.
//
//   const auto parts = DealParts({0, 100, 200}, {1000, 0}, {});
//   parts[1].owner;      // 1: it is the second place's inside,
//   parts[1].place;      // 0: and the first one's outside
//
// Thread safety: values and pure functions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim-node/emulator/collective/domains/region.h"

namespace tahoma::sim {

struct DealtPart {
  Extent elements;        // in the count of the region
  std::size_t owner = 0;  // the place that has it inside
  std::size_t place = 0;  // the place that answers for it
  friend bool operator==(const DealtPart&, const DealtPart&) = default;
};

// A place to which links lead from another.
struct NearPlace {
  std::size_t place = 0;
  std::uint64_t rate = 0;  // of the links
};
using NearPlaces = std::vector<NearPlace>;

// Place p owns [bounds[p], bounds[p + 1]), and its NIC has the rate rates[p] (not all 0). Returns
// the whole region in ascending order, no part empty. A place keeps what it can of its own; what is
// left is spread over all that have room, so that it leaves and reaches a chip on all its links.
// With equal rates each place answers for its own. Where the places near each one are given, those
// of them that have a NIC share what it cannot keep, in proportion to the links: where links are
// fuller than NICs, the shortest hand-over is the best, whatever the NICs then carry.
std::vector<DealtPart> DealParts(const std::vector<std::uint64_t>& bounds,
                                 const std::vector<int>& rates,
                                 const std::vector<NearPlaces>& near);

}  // namespace tahoma::sim

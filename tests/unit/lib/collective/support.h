// What the tests of lib/collective share: the two tori in full health, damage, and random sets.
//
//   DomainLinks links = UltraServer();
//   SlowCable(links, /*chip=*/5, Axis::kX, Direction::kPlus, /*permille=*/0);
//
// Thread safety: pure functions of their arguments.

#pragma once

#include <bit>
#include <cstdint>

#include "lib/base/rng.h"
#include "lib/collective/domain_links.h"
#include "lib/torus/box.h"
#include "lib/torus/shape.h"

namespace tahoma::collective {

inline DomainLinks UltraServer() { return {torus::kUltraServerShape, hw::kTrainium2.links}; }
inline DomainLinks Instance() { return {torus::kInstanceShape, hw::kTrainium2.links}; }

// Sets both directions of the cable that the chip has on that side to a part of their rate.
inline void SlowCable(DomainLinks& links, int chip, torus::Axis axis, torus::Direction direction,
                      std::uint16_t permille) {
  const Arc arc = DomainLinks::ArcOf(torus::ChipIndex(chip), axis, direction);
  links.SetPermille(
      {.chip = torus::ChipIndex(chip), .axis = axis, .direction = direction, .permille = permille});
  links.SetPermille({.chip = torus::ChipIndex(links.to(arc)),
                     .axis = axis,
                     .direction = torus::Opposite(direction),
                     .permille = permille});
}

// The rate into the part from other chips of `through`, by every link.
inline std::uint64_t RateInto(const DomainLinks& links, torus::ChipMask part,
                              torus::ChipMask through) {
  std::uint64_t sum = 0;
  for (int arc = 0; arc < links.arc_count(); ++arc) {
    const auto at = static_cast<Arc>(arc);
    if (links.rate(at) == 0) continue;
    const torus::ChipMask from = torus::ChipMask{1} << (arc / kPortsPerChip);
    const torus::ChipMask to = torus::ChipMask{1} << links.to(at);
    if ((from & through & ~part) != 0 && (to & part) != 0) sum += links.rate(at);
  }
  return sum;
}

// A set of chips that hang together, and links some of which are slow or down.
struct RandomSet {
  RandomSet(Rng& rng, int chips_wanted) : links(rng.Below(2) == 0 ? Instance() : UltraServer()) {
    const auto chips = static_cast<std::uint64_t>(links.torus().chip_count());
    while (std::popcount(members) < chips_wanted) {
      const auto chip = static_cast<int>(rng.Below(chips));
      if ((links.topology().neighbours[static_cast<std::size_t>(chip)] & members) != 0) {
        members |= torus::ChipMask{1} << chip;
      }
    }
    for (std::uint64_t i = rng.Below(8); i > 0; --i) {
      const auto chip = static_cast<int>(rng.Below(chips));
      const torus::Axis axis = torus::kAxes.at(rng.Below(3));
      if (links.torus().extent(axis) == 1) continue;
      SlowCable(links, chip, axis, torus::kDirections.at(rng.Below(2)),
                static_cast<std::uint16_t>(rng.Below(4) * 333));
    }
  }

  DomainLinks links;
  torus::ChipMask members = 1;
};

}  // namespace tahoma::collective

// Chips of a topology domain as bits: what the searches over links do with masks.
//
// Scope: internal to lib/collective.
//
// Thread safety: pure functions.

#pragma once

#include <bit>
#include <cstdint>

#include "lib/torus/box.h"

namespace tahoma::collective {

inline torus::ChipMask Bit(int chip) { return torus::ChipMask{1} << chip; }
// `chips` must not be empty.
inline int Lowest(torus::ChipMask chips) { return std::countr_zero(chips); }
inline std::uint64_t CountOf(torus::ChipMask chips) {
  return static_cast<std::uint64_t>(std::popcount(chips));
}

}  // namespace tahoma::collective

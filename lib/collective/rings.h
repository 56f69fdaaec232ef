// Closed paths through sets of chips, along which rings of collectives pass their data.
//
// A 4x4 plane has two Hamiltonian cycles without a common link, and an UltraServer five cycles that
// together use all its links in proportion to their rates: an X/Y link has a rate of twice 64 GB/s,
// a Z link of once, so each X/Y link is in two of the cycles, each Z link in one
// (docs/reference/collectives.md#cycles-of-an-ultraserver). Used in both directions, with a tenth
// of the data each, the five carry the 640 GB/s that a chip's links do. On other sets a cycle is
// searched for.
//
// Thread safety: pure functions.

#pragma once

#include <vector>

#include "lib/collective/domain_links.h"
#include "lib/torus/box.h"
#include "lib/torus/shape.h"

namespace tahoma::collective {

using Ring = std::vector<torus::ChipIndex>;

// The five cycles of an UltraServer. Neighbours in a cycle, and its ends, are one link apart on
// torus::kUltraServerShape.
const std::vector<Ring>& UltraServerCycles();

// Returns the subcube of these chips, nullptr if they are none.
const torus::Box* BoxOf(const torus::Shape& torus, torus::ChipMask chips);

// Returns closed paths through all of `chips`, to be used in both directions at once: Hamiltonian
// cycles over links that are up, if there are any; otherwise one order of the chips, of which
// neighbours may be more than a link apart. A searched cycle begins at `first`, one of the chips.
std::vector<Ring> RingsOf(const DomainLinks& links, torus::ChipMask chips, torus::ChipIndex first);

}  // namespace tahoma::collective

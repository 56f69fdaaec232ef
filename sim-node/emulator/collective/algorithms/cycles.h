// The five Hamiltonian cycles of an UltraServer that together use all its links in proportion to
// their rates.
//
// An X/Y link has a rate of twice 64 GB/s, a Z link of once. So each X/Y link is in two of the
// cycles, each Z link in one (docs/reference/collectives.md#cycles-of-an-ultraserver). Used in both
// directions, with a tenth of the data each, they carry the 640 GB/s that a chip's links do.
//
// Thread safety: pure functions.

#pragma once

#include <vector>

#include "lib/torus/shape.h"

namespace tahoma::sim {

// Neighbours in a cycle, and its ends, are one link apart on torus::kUltraServerShape.
const std::vector<std::vector<torus::ChipIndex>>& UltraServerCycles();

}  // namespace tahoma::sim

// Boxes that go around the ring of an UltraServer, begun at another layer.
//
// A box as high as the UltraServer is a ring of four layers: its ranks keep their neighbours
// wherever the first layer is. The box table has such a box once, begun at layer 0.
//
// Thread safety: a pure function.

#pragma once

#include <span>

#include "lib/torus/box.h"

namespace tahoma::controller {

// Returns the same box begun at layers 1, 2 and 3; nothing for a box that is less high. `place` is
// one of the UltraServer's box table.
std::span<const torus::Box> TurnsOf(const torus::Box& place);

}  // namespace tahoma::controller

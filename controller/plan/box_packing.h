// Counts how many boxes fit side by side.
//
// Placing boxes one after the other where each looks best may leave no room for the last. A box
// that belongs to a largest set of disjoint boxes leaves room for the others.
//
// Scope: arithmetic on chip masks.
//
// Thread safety: a pure function.

#pragma once

#include <span>

#include "lib/torus/box.h"

namespace tahoma::controller {

// Returns how many of `boxes` can be disjoint and lie in `free`, counted up to `enough`. The search
// is exact for some thousand steps, more than 16 chips ever need; after that it returns the best
// count found, and sets `exact` to false if there is one.
int MostBoxes(std::span<const torus::ChipMask> boxes, torus::ChipMask free, int enough,
              bool* exact = nullptr);

}  // namespace tahoma::controller

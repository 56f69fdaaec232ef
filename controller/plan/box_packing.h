// How many boxes fit side by side.
//
//   MostBoxes(masks, unit.free, 3);   // 0 to 3
//
// Who takes one box after the other where each looks best may leave no room for the last. A box
// that is one of the most that fit leaves room for the others.
//
// Scope: arithmetic on chip masks.
//
// Thread safety: a pure function.

#pragma once

#include <span>

#include "lib/torus/box.h"

namespace tahoma::controller {

// The most of `boxes` that are disjoint and lie in `free`, but at most `enough`. Exact for up to
// some thousand steps of a search, more than 16 chips ever need; beyond, what was found by then.
int MostBoxes(std::span<const torus::ChipMask> boxes, torus::ChipMask free, int enough);

}  // namespace tahoma::controller

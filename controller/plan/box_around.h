// Boxes that a slice of a gang may have beside chips that some of its pods keep.
//
//   for (const SlicePlacement& place : BoxesAround(state, domain, "4x4x2", kept)) …
//
// Thread safety: a pure function.

#pragma once

#include <string_view>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/model/ids.h"
#include "controller/plan/decision.h"
#include "lib/torus/box.h"

namespace tahoma::controller {

// Returns the boxes of the shape in the domain that have all chips of `kept`, whose other chips are
// free and whose links work, in ascending order of their origins. Empty for a shape that no text of
// a placement has.
std::vector<SlicePlacement> BoxesAround(const ClusterState& state, DomainId domain,
                                        std::string_view shape, torus::ChipMask kept);

}  // namespace tahoma::controller

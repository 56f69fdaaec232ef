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

// Returns the nodes of the box, from its origin on; an id is not valid where a node is lacking.
std::vector<NodeId> NodesOf(const DomainState& domain, const torus::Box& box);
// Returns the box as a slice, with its nodes.
SlicePlacement SliceOn(const ClusterState& state, DomainId domain, const torus::Box& box);

// Returns the boxes of the shape in the domain around all chips of `kept`, with their other chips
// free and all links working, in ascending order of origins. Empty for a shape that no placement
// has.
std::vector<SlicePlacement> BoxesAround(const ClusterState& state, DomainId domain,
                                        std::string_view shape, torus::ChipMask kept);

}  // namespace tahoma::controller

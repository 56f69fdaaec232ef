#include "controller/plan/box_around.h"

#include <cstddef>
#include <utility>

namespace tahoma::controller {

std::vector<SlicePlacement> BoxesAround(const ClusterState& state, DomainId id,
                                        std::string_view shape, torus::ChipMask kept) {
  std::vector<SlicePlacement> places;
  const DomainState& domain = state.domain(id);
  const auto parsed = torus::Shape::Parse(shape);
  if (!parsed.ok()) return places;
  for (const torus::Box& box : torus::BoxTable::Of(domain.shape()).Rotations(*parsed)) {
    if ((kept & ~box.mask) != 0 || (box.mask & ~kept & ~domain.free) != 0) continue;
    if (domain.down.Intersects(box.links) || !domain.modes.Serve(box)) continue;
    SlicePlacement place{.domain = domain.name, .box = box, .nodes = {}};
    for (int step = 0; step < box.size.extent(torus::Axis::kZ); ++step) {
      const int z = (box.origin.z + step) % domain.shape().extent(torus::Axis::kZ);
      const NodeId node = domain.nodes[static_cast<std::size_t>(z)];
      if (node.valid()) place.nodes.push_back(state.node(node).node->name);
    }
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace tahoma::controller

#include "controller/plan/box_around.h"

#include <cstddef>

namespace tahoma::controller {

std::vector<NodeId> NodesOf(const DomainState& domain, const torus::Box& box) {
  std::vector<NodeId> nodes;
  for (int step = 0; step < box.size.extent(torus::Axis::kZ); ++step) {
    const int z = (box.origin.z + step) % domain.shape().extent(torus::Axis::kZ);
    nodes.push_back(domain.nodes[static_cast<std::size_t>(z)]);
  }
  return nodes;
}

SlicePlacement SliceOn(const ClusterState& state, DomainId id, const torus::Box& box) {
  const DomainState& domain = state.domain(id);
  SlicePlacement slice{.domain = domain.name, .box = box, .nodes = {}};
  for (const NodeId node : NodesOf(domain, box)) {
    if (node.valid()) slice.nodes.push_back(state.node(node).node->name);
  }
  return slice;
}

std::vector<SlicePlacement> BoxesAround(const ClusterState& state, DomainId id,
                                        std::string_view shape, torus::ChipMask kept) {
  std::vector<SlicePlacement> places;
  const DomainState& domain = state.domain(id);
  const auto parsed = torus::Shape::Parse(shape);
  if (!parsed.ok()) return places;
  for (const torus::Box& box : torus::BoxTable::Of(domain.shape()).Rotations(*parsed)) {
    if ((kept & ~box.mask) != 0 || (box.mask & ~kept & ~domain.free) != 0) continue;
    if (domain.down.Intersects(box.links) || !domain.modes.Serve(box)) continue;
    places.push_back(SliceOn(state, id, box));
  }
  return places;
}

}  // namespace tahoma::controller

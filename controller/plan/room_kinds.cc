#include "controller/plan/room_kinds.h"

#include <algorithm>
#include <bit>

#include "controller/plan/fleet_index.h"

namespace tahoma::controller {
namespace {

static_assert(FleetIndex::kKeys < 64);

RoomKinds Bit(std::size_t key) { return RoomKinds{1} << key; }

// Returns the cores that are free in the started chips of the node.
RoomKinds CoresOf(const NodeState& node, torus::ChipMask present) {
  RoomKinds rooms = 0;
  for (std::size_t chip = 0; chip < kChipsPerNode; ++chip) {
    const int lnc = node.lnc[chip];
    if (lnc == 0 || (present >> chip & 1) == 0) continue;
    const int cores = (kCoresPerChip - std::popcount(node.busy_cores[chip])) / lnc;
    for (int n = 1; n <= cores; ++n) rooms |= Bit(FleetIndex::CoreKey(lnc, n));
  }
  return rooms;
}

}  // namespace

RoomKinds RoomsOf(const ClusterState& state, DomainId id, torus::ChipMask free) {
  const DomainState& domain = state.domain(id);
  RoomKinds rooms = 0;
  if (domain.torus_known) {
    for (const torus::Box& box : torus::BoxTable::Of(domain.shape()).all()) {
      if ((box.mask & ~free) != 0 || domain.down.Intersects(box.links)) continue;
      if (domain.modes.Serve(box)) rooms |= Bit(FleetIndex::BoxKey(box.size));
    }
  }
  int most = 0;
  for (int z = 0; z < hw::kUltraServerNodes; ++z) {
    const NodeId node = domain.nodes[static_cast<std::size_t>(z)];
    if (!node.valid()) continue;
    most = std::max(most, torus::ChipCount(free >> (16 * z) & kInstance));
    rooms |= CoresOf(state.node(node), domain.present >> (16 * z) & kInstance);
  }
  for (int chips = 1; chips <= most; ++chips) rooms |= Bit(FleetIndex::ChipKey(chips));
  return rooms;
}

}  // namespace tahoma::controller

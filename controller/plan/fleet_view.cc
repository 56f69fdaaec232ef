#include "controller/plan/fleet_view.h"

#include "controller/plan/causes.h"
#include "controller/plan/decision.h"

namespace tahoma::controller {

Room EmptyRoom(const NodeState& node) {
  NodeState empty;
  empty.node = node.node;
  return RoomOf(empty);
}

Room RepairedRoom(const NodeState& node) {
  Room room = EmptyRoom(node);
  room.chips = node.node->family->devices->chip_mask;
  room.unhealthy = 0;
  room.down = {};
  room.repaired = true;
  return room;
}

bool MayServe(const DomainState& domain, const torus::Box& place, const ClusterState& state) {
  if (domain.down.Intersects(place.links)) return false;
  DomainModes idle;
  for (std::size_t z = 0; z < domain.nodes.size(); ++z) {
    if (!domain.nodes[z].valid()) continue;
    const Node& node = *state.node(domain.nodes[z]).node;
    if (!node.elected || node.elected->running) continue;
    ElectedModes elected = *node.elected;
    elected.chosen = hw::UltraServerMode::kUnset;
    AddModes(static_cast<int>(z), elected, idle);
  }
  return idle.Serve(place);
}

bool FleetView::Admits(const NodeDemand& demand, const Node& node) const {
  if (kind_ == FleetKind::kRepaired) return AdmitsWhenReady(demand, node);
  return node.schedulable() && demand.Admits(node);
}

Room FleetView::RoomOn(NodeId id) const {
  const NodeState& node = state_.node(id);
  if (kind_ == FleetKind::kNow) return RoomOf(node);
  return kind_ == FleetKind::kIdle ? EmptyRoom(node) : RepairedRoom(node);
}

torus::ChipMask FleetView::FreeIn(const DomainState& domain) const {
  if (kind_ == FleetKind::kNow) return domain.free;
  if (kind_ == FleetKind::kIdle) return domain.present;
  torus::ChipMask chips = 0;
  for (std::size_t z = 0; z < domain.nodes.size(); ++z) {
    if (!domain.nodes[z].valid()) continue;
    const Node& node = *state_.node(domain.nodes[z]).node;
    chips |= torus::ChipMask{node.family->devices->chip_mask} << (16 * z);
  }
  return chips;
}

bool FleetView::Serves(const DomainState& domain, const torus::Box& place) const {
  const bool links = !domain.down.Intersects(place.links);
  if (kind_ == FleetKind::kNow) return links && domain.modes.Serve(place);
  if (kind_ == FleetKind::kRepaired) {
    DomainState repaired = domain;
    repaired.down = {};
    return MayServe(repaired, place, state_);
  }
  return links && MayServe(domain, place, state_);
}

bool FleetView::MayUse(const DomainState& domain, const GangSpec& gang, WallTime now) const {
  if (kind_ == FleetKind::kNow) return BlocksAdmit(domain, gang, now);
  return gang.reservation.empty() || domain.block.reservation == gang.reservation;
}

}  // namespace tahoma::controller

// The fleet as a search sees it: as it is, with nothing held, or with everything repaired, too.
//
// Scope: reading. A view keeps a reference to the state that it shows.
//
// Thread safety: a const view may be read by any thread.

#pragma once

#include <cstdint>

#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "controller/plan/member_fit.h"
#include "lib/torus/box.h"

namespace tahoma::controller {

// kIdle: nothing is held and no hardware is kept for Capacity Blocks. kRepaired: nodes are ready,
// chips and links work, too.
enum class FleetKind : std::uint8_t { kNow, kIdle, kRepaired };

// Returns the node's room with nothing held.
Room EmptyRoom(const NodeState& node);
// Returns the node's room if the node were ready and all its chips and links worked.
Room RepairedRoom(const NodeState& node);

// Returns whether a box that the modes do not serve now may be served without a new election: when
// the running election ends, or by an elected mode once the chosen mode is given up.
bool MayServe(const DomainState& domain, const torus::Box& place, const ClusterState& state);

class FleetView {
 public:
  FleetView(const ClusterState& state, FleetKind kind) : state_(state), kind_(kind) {}

  const ClusterState& state() const { return state_; }
  FleetKind kind() const { return kind_; }

  bool Admits(const NodeDemand& demand, const Node& node) const;
  Room RoomOn(NodeId node) const;
  // Returns the wholly free chips of the domain.
  torus::ChipMask FreeIn(const DomainState& domain) const;
  // Returns whether links and modes let the box work.
  bool Serves(const DomainState& domain, const torus::Box& place) const;
  // Returns whether Capacity Blocks let the gang use the domain.
  bool MayUse(const DomainState& domain, const GangSpec& gang, WallTime now) const;

 private:
  const ClusterState& state_;
  FleetKind kind_;
};

}  // namespace tahoma::controller

// The kinds of room that a domain has, and that may help a gang, as bits.
//
//   const RoomKinds rooms = RoomsOf(state, domain, state.domain(domain).free);
//   const bool may_help = (rooms & blocked.rooms) != 0;
//
// A bit is a key of FleetIndex: a free box of an oriented size, n free chips on one node, n free
// logical cores in a started chip.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>

#include "controller/model/cluster.h"
#include "controller/model/ids.h"

namespace tahoma::controller {

using RoomKinds = std::uint64_t;

// The kinds of a gang whose needs no kind of room describes: anything that becomes free may help.
inline constexpr RoomKinds kAnyRoom = ~RoomKinds{0};

// Returns the kinds of room of the domain if these chips were free.
RoomKinds RoomsOf(const ClusterState& state, DomainId domain, torus::ChipMask free);

}  // namespace tahoma::controller

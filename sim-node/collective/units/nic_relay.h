// How messages go between units when NICs are down: over the NICs of other chips of the unit.
//
//   TAHOMA_ASSIGN_OR_RETURN(Relay relay, RelayOf(sends, set, fabric, free, /*chunks=*/8));
//   AddTurns(std::move(relay), set, work, costs, timing, schedule);
//
// A chip whose NIC cannot send hands what leaves its unit to chips whose NICs can; what is for a
// chip whose NIC cannot receive goes to others, which hand it on. Messages are dealt out such that
// the NICs that work share the bytes of the unit evenly; but a next one is asked for help only when
// one has as much as the fullest chip had, so that a NIC that is down makes nothing faster.
//
// All of it is cut into chunks: while one is between the units, the next is handed over and the one
// before is handed on. Messages that need no help are not cut and go at once.
//
// Scope: exchanges. In other operations chips without NIC answer for nothing (hierarchical.h).
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "sim-node/collective/plan/plan_options.h"
#include "sim-node/collective/schedule/schedule.h"
#include "sim-node/collective/units/units.h"
#include "sim-node/link/fabric.h"

namespace tahoma::sim {

struct Relay {
  Step direct;  // between units, with nobody's help
  struct Chunk {
    std::vector<Step> handed_over;  // by group
    Step between;
    std::vector<Step> handed_on;  // by group
  };
  std::vector<Chunk> chunks;
  // What a chip's memory must have beyond where it was free.
  std::uint64_t bytes = 0;
};

// `sends` are copies between chips of different groups; `free` says of every chip where its memory
// is free, for what it keeps for others. kFailedPrecondition when no chip of a unit has a NIC that
// can send what leaves it, or receive what comes.
absl::StatusOr<Relay> RelayOf(const Step& sends, const UnitSet& set, const Fabric& fabric,
                              const std::map<torus::ChipIndex, std::uint64_t>& free,
                              std::uint64_t chunks);

// Appends the turns; messages between units start up as `work` says.
void AddTurns(Relay relay, const UnitSet& set, const StepWork& work, const ChipCosts& costs,
              const LinkTiming& timing, Schedule& schedule);

}  // namespace tahoma::sim

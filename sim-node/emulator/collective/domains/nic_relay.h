// Relays messages between topology domains when NICs are down: over the NICs of other chips of the
// same domain.
//
//   TAHOMA_ASSIGN_OR_RETURN(Relay relay, RelayOf(sends, set, fabric, free, /*chunks=*/8));
//   AppendRelay(std::move(relay), set, work, costs, timing, schedule);
//
// A chip whose NIC cannot send hands the bytes that leave its domain to chips whose NICs can; bytes
// for a chip whose NIC cannot receive go to others, which hand them on. Messages are dealt out such
// that the NICs that work share the bytes of the domain evenly; but a next one is asked for help
// only when one has as much as the fullest chip had, so that a NIC that is down makes nothing
// faster.
//
// Relayed bytes are cut into chunks: while one is between the domains, the next is handed over and
// the one before is handed on. Messages that need no help are not cut and go at once.
//
// Scope: exchanges. In other operations chips without NIC answer for nothing (hierarchical.h).
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "sim-node/emulator/collective/domains/domains.h"
#include "sim-node/emulator/collective/plan/plan_options.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/link/fabric.h"

namespace tahoma::sim {

struct Relay {
  Step direct;  // between domains, without a relay
  struct Chunk {
    std::vector<Step> handed_over;  // by group
    Step between;
    std::vector<Step> handed_on;  // by group
  };
  std::vector<Chunk> chunks;
  // The bytes that a chip's memory needs beyond where it was free.
  std::uint64_t bytes = 0;
};

// `sends` are copies between chips of different groups; `free` says for every chip where its memory
// is free, for data that it relays. kFailedPrecondition when no chip of a domain has a NIC that can
// send the bytes that leave it, or receive those that come.
absl::StatusOr<Relay> RelayOf(const Step& sends, const DomainSet& set, const Fabric& fabric,
                              const std::map<torus::ChipIndex, std::uint64_t>& free,
                              std::uint64_t chunks);

// Appends the scheduled steps; messages between domains start up as `work` says.
void AppendRelay(Relay relay, const DomainSet& set, const StepWork& work, const ChipCosts& costs,
                 const LinkTiming& timing, Schedule& schedule);

}  // namespace tahoma::sim

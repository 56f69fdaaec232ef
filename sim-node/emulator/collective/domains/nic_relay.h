// Relays messages between topology domains when NICs are down: over the NICs of other chips of the
// same domain.
//
// A chip that is not served by its own NIC hands messages to other domains to its proxy
// (nic_proxies.h), and the proxy hands on messages to the chip.
//
// Relayed bytes are cut into chunks: while a chunk is between the domains, the next chunk is handed
// over and the previous chunk is handed on. Messages that need no help are not cut and go at once.
//
// Scope: exchanges. Other operations hand over parts of regions (hand_over.h).
//
// Thread safety: pure functions.

#pragma once

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
// is free, for relayed data.
Relay RelayOf(const Step& sends, const DomainSet& set,
              const std::map<torus::ChipIndex, std::uint64_t>& free, std::uint64_t chunks);

// Appends the scheduled steps; messages between domains start up as `work` says.
void AppendRelay(Relay relay, const DomainSet& set, const StepWork& work, const ChipCosts& costs,
                 const LinkTiming& timing, Schedule& schedule);

}  // namespace tahoma::sim

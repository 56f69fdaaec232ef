// Relays messages between topology domains when NICs are down: over the NICs of other chips of the
// same domain.
//
//   Relay relay = RelayOf(sends, set, free, /*chunks=*/8);
//   AppendRelay(std::move(relay), set, work, costs, timing, schedule);
//
// A chip that its own NIC does not serve hands what leaves its domain to its proxy (nic_proxies.h),
// which hands on what comes for it.
//
// Relayed bytes are cut into chunks: while one is between the domains, the next is handed over and
// the one before is handed on. Messages that need no help are not cut and go at once.
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
// is free, for data that it relays.
Relay RelayOf(const Step& sends, const DomainSet& set,
              const std::map<torus::ChipIndex, std::uint64_t>& free, std::uint64_t chunks);

// Appends the scheduled steps; messages between domains start up as `work` says.
void AppendRelay(Relay relay, const DomainSet& set, const StepWork& work, const ChipCosts& costs,
                 const LinkTiming& timing, Schedule& schedule);

}  // namespace tahoma::sim

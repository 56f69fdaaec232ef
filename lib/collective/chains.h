// The time of chains of steps that a topology domain takes side by side: parts of a buffer whose
// blocks are of unlike length take the same steps, each part behind its own step before.
//
// Chains that send share the links equally: all of them put the same flows on the links. The memory
// serves one step after the other, in the order of their departures.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <vector>

#include "lib/collective/domain_links.h"

namespace tahoma::collective {

// One step, or several alike one after the other.
struct ChainStep {
  Picoseconds start{};   // until the departure
  Picoseconds links{};   // of the fullest link, for this chain alone
  Picoseconds hops{};    // from the end on the links to the arrival
  Picoseconds memory{};  // from the departure on
  std::uint64_t count = 1;
};
using Chain = std::vector<ChainStep>;

// Returns the time from the begin of all chains to the end of the last.
Picoseconds ChainsTime(const std::vector<Chain>& chains);

}  // namespace tahoma::collective

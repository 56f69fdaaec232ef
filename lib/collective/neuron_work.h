// The work that Neuron's algorithms make on a chip beside the links, by aws-neuron-sdk
// (explore/intranode-collective-comm): reads and writes of HBM, starts of DMA engines, commands of
// CC-cores.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>

#include "lib/collective/domain_links.h"
#include "lib/collective/operation.h"

namespace tahoma::collective {

using hw::kHbmBanksMax;

// The use of a chip by one phase of an algorithm, for a byte that goes to another chip.
struct ChipUse {
  int reads = 1;             // at the sender
  int writes = 1;            // at the receiver
  int starts = 1;            // DMA starts of one step, one behind the other
  int commands = 1;          // for each chip that a chip sends to
  int banks = kHbmBanksMax;  // of HBM, with the buffers of the chip's ranks
  friend bool operator==(const ChipUse&, const ChipUse&) = default;
};

// Returns the use of a chip by an algorithm in one topology domain, with so many ranks in so many
// banks:
//
//   mesh       reduce-scatter 4R1W, each rank serving a part of the destinations
//   rdh, tree  2R1W and 1R1W, once the ranks of a chip have combined
//   kangaring  3R1W and 1R2W for each two ranks, pair after pair
//   ring       2R1W and 1R1W, rank after rank
ChipUse NeuronUse(Algorithm algorithm, Phase phase, int ranks, int banks = kHbmBanksMax);

// Returns the time in which so many banks of a chip read or write so many bytes together; 0 if
// memory is free.
Picoseconds MemoryTime(std::uint64_t touched, int banks, const LinkCosts& costs);

// Returns the time from the end of a step to the departure of the next step's bytes, from a chip
// with so many destinations.
Picoseconds StepStart(const ChipUse& use, std::uint64_t destinations, const LinkCosts& costs);

// The times of the stages without links that ranks on one chip need before and after a phase of an
// algorithm, for buffers of `bytes` on `chips` chips, in so many banks of each.
struct ChipStages {
  Picoseconds before{};
  Picoseconds after{};
};
ChipStages NeuronStages(Algorithm algorithm, Phase phase, std::uint64_t bytes, std::uint64_t chips,
                        int ranks, int banks, const LinkCosts& costs);

}  // namespace tahoma::collective

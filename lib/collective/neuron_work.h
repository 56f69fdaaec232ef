// The work that Neuron's algorithms make on a chip beside its links, as aws-neuron-sdk describes it
// (explore/intranode-collective-comm): reads and writes of HBM, starts of DMA engines, commands of
// CC-cores.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>

#include "lib/collective/domain_links.h"

namespace tahoma::collective {

enum class Phase : std::uint8_t { kReduceScatter, kAllGather };

// Neuron's algorithms inside a topology domain, and trees: these are in no document of Neuron, and
// work as rdh does.
enum class NeuronAlgorithm : std::uint8_t { kMesh, kRdh, kKangaRing, kRing, kTree };

// The use of a chip by one phase of an algorithm, for a byte that goes to another chip.
struct ChipUse {
  int reads = 1;     // at the sender
  int writes = 1;    // at the receiver
  int starts = 1;    // DMA starts of one step, one behind the other
  int commands = 1;  // for each chip that a chip sends to
  friend bool operator==(const ChipUse&, const ChipUse&) = default;
};

// Returns the use with all ranks of a chip:
//
//   mesh       reduce-scatter 4R1W, each rank serving a part of the destinations
//   rdh, tree  2R1W and 1R1W, once the ranks of a chip have combined
//   kangaring  3R1W and 1R2W for each two ranks, pair after pair
//   ring       2R1W and 1R1W, rank after rank
ChipUse NeuronUse(NeuronAlgorithm algorithm, Phase phase, int ranks);

// Returns the time in which a chip's memory reads or writes so many bytes; 0 if it does not count.
Picoseconds MemoryTime(std::uint64_t touched, const LinkCosts& costs);

// Returns the time from the end of a step to the departure of the next one's bytes, from a chip
// that sends to so many others.
Picoseconds StepStart(const ChipUse& use, std::uint64_t destinations, const LinkCosts& costs);

// The times of the stages without links that ranks on one chip need before and after a phase of an
// algorithm, for buffers of `bytes` on `chips` chips.
struct ChipStages {
  Picoseconds before{};
  Picoseconds after{};
};
ChipStages NeuronStages(NeuronAlgorithm algorithm, Phase phase, std::uint64_t bytes,
                        std::uint64_t chips, int ranks, const LinkCosts& costs);

}  // namespace tahoma::collective

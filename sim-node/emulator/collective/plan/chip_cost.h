// The time that a chip's own hardware adds to a collective: its memory, the start of its DMA
// engines, and its CC-cores.
//
//   const ChipUse use = NeuronUse(Algorithm::kRdh, Phase::kReduceScatter, /*ranks=*/4);
//   const StepWork work = WorkOf(step, use, {}, links.timing());
//   // the step departs work.start later, and ends work.memory after its departure at the earliest
//
// Memory: every byte that goes to another chip is read there and written here, more often when it
// is combined with others or belongs to several ranks. A chip's HBM serves all of that in a step,
// beside the links; the slower of the two ends the step. The DMA engines need no term of their own:
// those of a Trainium2 together move as much as its HBM (docs/reference/trainium2.md#dma).
//
// DMA start: a step cannot begin sooner after its signal than an engine needs to start.
// LinkTiming::step is the same wait as a whole, so the longer of the two counts.
//
// CC-cores: each of a chip's CC-cores gives one DMA command after the other. Steps with more
// destinations than CC-cores wait for them.
//
// All costs are those of the chip model of LinkTiming.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <span>

#include "sim-node/emulator/collective/algorithms/algorithms.h"
#include "sim-node/emulator/collective/plan/plan_options.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/engine/virtual_time.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

// The use of a chip by one phase of an algorithm, for a byte that goes to another chip.
struct ChipUse {
  int reads = 1;     // at the sender
  int writes = 1;    // at the receiver
  int starts = 1;    // DMA starts of one step, one behind the other
  int commands = 1;  // for each chip that a chip sends to
};

// Returns the use of Neuron's algorithms as its documents describe it (aws-neuron-sdk
// explore/intranode-collective-comm), with all ranks of a chip:
//
//   mesh       reduce-scatter 4R1W, each rank serving a part of the destinations
//   rdh        2R1W and 1R1W, once the ranks of a chip have combined
//   kangaring  3R1W and 1R2W for each two ranks, pair after pair
//   ring       2R1W and 1R1W, rank after rank
//   tree       as rdh: which is no algorithm of Neuron's documents
ChipUse NeuronUse(Algorithm algorithm, Phase phase, int ranks);

// The times of the stages without links that ranks on one chip need before and after a phase of one
// of Neuron's algorithms, for buffers of `bytes` on `chips` chips.
struct ChipStages {
  VirtualDuration before{};
  VirtualDuration after{};
};
ChipStages NeuronStages(Algorithm algorithm, Phase phase, std::uint64_t bytes, std::uint64_t chips,
                        int ranks, const ChipCosts& costs, const LinkTiming& timing);

// The time in which a chip's memory reads or writes so many bytes; 0 if memory does not count.
VirtualDuration MemoryTime(std::uint64_t touched, const ChipCosts& costs,
                           const hw::ChipModel& chip);

// A stage that touches so many bytes of one chip's memory and uses no link.
VirtualDuration StageTime(std::uint64_t touched, const ChipCosts& costs, const LinkTiming& timing);

// Returns the work of a step in which the busiest chip touches `touched` bytes, and the one with
// the most destinations sends to `destinations` chips.
StepWork WorkOf(std::uint64_t touched, int destinations, const ChipUse& use, const ChipCosts& costs,
                const LinkTiming& timing);
// Returns the work of this step.
StepWork WorkOf(std::span<const Send> step, const ChipUse& use, const ChipCosts& costs,
                const LinkTiming& timing);

}  // namespace tahoma::sim

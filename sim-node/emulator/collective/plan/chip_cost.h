// The time that a chip's own hardware adds to a collective: its memory, the start of its DMA
// engines, and its CC-cores.
//
//   const ChipUse use = collective::NeuronUse(Algorithm::kRdh, Phase::kReduceScatter, /*ranks=*/4);
//   const StepWork work = WorkOf(step, use, {}, links.timing());
//   // the step departs work.start later, and ends work.memory after its departure at the earliest
//
// Memory: every byte that goes to another chip is read there and written here, more often when the
// byte is combined with others or belongs to several ranks. The HBM banks with the ranks' buffers
// serve all reads and writes of a step, beside the links; the slower of the two ends the step. The
// DMA engines need no term: those of a Trainium2 together move as much as its HBM, those of two
// cores as much as their bank (docs/reference/trainium2.md#dma).
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

#include "lib/collective/domain_links.h"
#include "lib/collective/neuron_work.h"
#include "sim-node/emulator/collective/algorithms/algorithms.h"
#include "sim-node/emulator/collective/plan/plan_options.h"
#include "sim-node/emulator/collective/schedule/request.h"
#include "sim-node/emulator/collective/schedule/schedule.h"
#include "sim-node/emulator/link/torus_links.h"

namespace tahoma::sim {

using collective::ChipUse;

// Returns the costs of messages as lib/collective knows them, without the chips' costs that do not
// count.
collective::LinkCosts LinkCostsOf(const ChipCosts& costs, const LinkTiming& timing);
// Returns the links at their rates of now, and the costs of messages.
collective::DomainLinks DomainLinksOf(const TorusLinks& links, const ChipCosts& costs = {});

// Returns the work of a step in which the busiest chip touches `touched` bytes, and the one with
// the most destinations sends to `destinations` chips.
StepWork WorkOf(std::uint64_t touched, int destinations, const ChipUse& use, const ChipCosts& costs,
                const LinkTiming& timing);
// Returns the work of this step, on chips that are used alike.
StepWork WorkOf(std::span<const Send> step, const ChipUse& use, const ChipCosts& costs,
                const LinkTiming& timing);
// The same, with the banks of each member instead of those of `use`. Nobody else sends or receives.
StepWork WorkOf(std::span<const Send> step, const ChipUse& use, std::span<const Member> members,
                const ChipCosts& costs, const LinkTiming& timing);

}  // namespace tahoma::sim

// The closed form of a collective's time in one topology domain: sums over the steps of Neuron's
// algorithms, without their messages.
//
//   const SetLoads loads(chips, links, /*first=*/torus::ChipIndex(0));
//   FormTime({.operation = Operation::kAllReduce, .bytes = 1 << 20, .ranks = 4}, loads, costs);
//
// A step takes its start (the software, the DMA engines and the CC-cores), and then what its
// fullest link or the busiest memory takes, whichever is longer (step_loads.h, neuron_work.h). The
// emulator times message by message; on chips in full health the two differ only by what rounding
// to whole elements does.
//
// Where chips form no subcube or links are damaged, trees may be faster. Their steps are known only
// once they are planned; here they are those that the worst cut of the set needs (cuts.h; of an
// all-reduce, its worst parts, partition.h).
//
// Scope: equal ranks on all chips; nothing else on the links.
//
// Thread safety: a SetLoads belongs to one thread.

#pragma once

#include <cstdint>

#include "lib/collective/neuron_work.h"
#include "lib/collective/operation.h"
#include "lib/collective/step_loads.h"

namespace tahoma::collective {

struct FormRequest {
  Operation operation = Operation::kAllReduce;
  std::uint64_t bytes = 0;   // of a rank's buffer; for all-gather, of everything gathered
  int ranks = 1;             // of each chip, at most its cores
  int banks = kHbmBanksMax;  // of each chip's HBM, with the ranks' buffers
  std::uint64_t element_bytes = 1;
};

// The parts of a step's time: until the messages leave, on the fullest link, on the hops of the
// last message, and in the busiest memory from the departure on.
struct StepParts {
  Picoseconds start{};
  Picoseconds links{};
  Picoseconds hops{};
  Picoseconds memory{};
};
StepParts PartsOf(const StepLoad& step, const ChipUse& use, std::uint64_t bytes,
                  const LinkCosts& costs);

// Returns the time of a step, or of several alike, when chips are used so.
Picoseconds StepTime(const StepLoad& step, const ChipUse& use, std::uint64_t bytes,
                     const LinkCosts& costs);

// Returns the time of a reduce-scatter or an all-gather of the request's buffer by one algorithm,
// the stages on the chips included. Picoseconds::max() when the chips do not allow it or links that
// are down cut chips off.
Picoseconds PhaseTime(Algorithm algorithm, Phase phase, const FormRequest& request,
                      const SetLoads& loads, const LinkCosts& costs);

// Returns the steps of the algorithm, those of rdh as of a reduce-scatter; nullptr for trees and
// where the chips do not allow the algorithm.
const StepLoads* StepsOf(Algorithm algorithm, const SetLoads& loads);

// The algorithm that a planner takes for a phase, and the time of the phase. On chips in full
// health planners take the first of algorithms whose times are equal but for a thousandth.
struct PhaseChoice {
  Algorithm algorithm = Algorithm::kMesh;
  Picoseconds time = Picoseconds::max();  // links that are down cut chips off
};
PhaseChoice ChosenFor(Phase phase, const FormRequest& request, const SetLoads& loads,
                      const LinkCosts& costs);

// Returns the time in which the root's chip brings each other one its block of a buffer.
Picoseconds ScatterTime(const FormRequest& request, const SetLoads& loads, const LinkCosts& costs);

// Returns the time of the fastest algorithm, or of the fastest two, one for each phase.
// Picoseconds::max() when links that are down cut chips off.
Picoseconds FormTime(const FormRequest& request, const SetLoads& loads, const LinkCosts& costs);

}  // namespace tahoma::collective

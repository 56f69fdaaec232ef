#include "lib/collective/closed_form.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <vector>

#include "lib/base/check.h"
#include "lib/collective/masks.h"
#include "lib/collective/trees.h"

namespace tahoma::collective {
namespace {

using torus::ChipMask;

// All but trees.
constexpr auto kOfNeuron = std::span(kAllAlgorithms).first<std::size(kAllAlgorithms) - 1>();

Picoseconds Sum(Picoseconds a, Picoseconds b) {
  constexpr Picoseconds kNever = Picoseconds::max();
  return a == kNever || b == kNever ? kNever : a + b;
}

Picoseconds Rounded(double picoseconds) {
  return Picoseconds(static_cast<Picoseconds::rep>(std::ceil(picoseconds)));
}

Picoseconds TimeOf(const StepLoads* steps, const ChipUse& use, std::uint64_t bytes,
                   const LinkCosts& costs) {
  if (steps == nullptr) return Picoseconds::max();
  Picoseconds sum(0);
  for (const StepLoad& step : *steps) sum += StepTime(step, use, bytes, costs);
  return sum;
}

// KangaRing serves groups that hold all ranks of their chips: with logical cores of two physical
// ones, or of one.
bool Allows(Algorithm algorithm, int ranks) {
  return algorithm != Algorithm::kKangaRing || ranks == 4 || ranks == 8;
}

// Returns the time of phases along trees, unless `limit` is less; Picoseconds::max() then, and when
// links do not join the chips.
Picoseconds TreesTime(const std::vector<Phase>& phases, const FormRequest& request,
                      const SetLoads& loads, const LinkCosts& costs, Picoseconds limit) {
  Picoseconds stages(0);
  for (const Phase phase : phases) {
    const ChipStages one = NeuronStages(Algorithm::kTree, phase, request.bytes, loads.count(),
                                        request.ranks, request.banks, costs);
    stages += one.before + one.after;
  }
  if (limit <= stages) return Picoseconds::max();
  if (limit != Picoseconds::max()) limit -= stages;
  std::vector<torus::ChipIndex> chips;
  for (ChipMask left = loads.chips(); left != 0; left &= left - 1) chips.emplace_back(Lowest(left));
  const auto plan = FastestTrees({.phases = phases, .bytes = request.bytes, .banks = request.banks},
                                 chips, loads.links(), costs, limit);
  return plan ? plan->time + stages : Picoseconds::max();
}

// Whether trees are tried: they need links between the chips, and serve where no closed form of an
// algorithm of Neuron's reaches the bound.
bool MayTakeTrees(const SetLoads& loads) {
  return loads.count() > 1 && !loads.regular() && loads.through() == loads.chips();
}

// Chooses the algorithm of a phase. An algorithm of Neuron's gives way to a later algorithm that is
// faster by more than time / `margin` (0: by anything).
PhaseChoice Choose(Phase phase, const FormRequest& request, const SetLoads& loads,
                   const LinkCosts& costs, Picoseconds::rep margin) {
  PhaseChoice chosen;
  for (const Algorithm algorithm : kOfNeuron) {
    const Picoseconds time = PhaseTime(algorithm, phase, request, loads, costs);
    const Picoseconds less = margin == 0 ? Picoseconds(0) : chosen.time / margin;
    if (time < chosen.time - less) chosen = {.algorithm = algorithm, .time = time};
  }
  if (!MayTakeTrees(loads)) return chosen;
  const Picoseconds trees = TreesTime({phase}, request, loads, costs, chosen.time);
  if (trees < chosen.time) chosen = {.algorithm = Algorithm::kTree, .time = trees};
  return chosen;
}

Picoseconds FastestPhase(Phase phase, const FormRequest& request, const SetLoads& loads,
                         const LinkCosts& costs) {
  return Choose(phase, request, loads, costs, /*margin=*/0).time;
}

Picoseconds AllReduce(const FormRequest& request, const SetLoads& loads, const LinkCosts& costs) {
  const auto both = [&](const auto& of_phase) {
    return Sum(of_phase(Phase::kReduceScatter), of_phase(Phase::kAllGather));
  };
  if (loads.count() == 1) {  // both phases by one algorithm
    Picoseconds best = Picoseconds::max();
    for (const Algorithm algorithm : kOfNeuron) {
      best = std::min(best, both([&](Phase phase) {
                        return PhaseTime(algorithm, phase, request, loads, costs);
                      }));
    }
    return best;
  }
  Picoseconds best = both([&](Phase phase) { return FastestPhase(phase, request, loads, costs); });
  if (!MayTakeTrees(loads)) return best;
  return std::min(best, TreesTime(PhasesOf(request.operation), request, loads, costs, best));
}

// The root scatters blocks by halving; Picoseconds::max() where the chips do not allow that.
Picoseconds ScatterByHalving(const ChipUse& use, const FormRequest& request, const SetLoads& loads,
                             const LinkCosts& costs) {
  if (loads.Halving() == nullptr) return Picoseconds::max();
  StepLoads halving = *loads.Halving();
  // A chip sends or receives, and the root's partner receives as much as the root sends.
  for (StepLoad& step : halving) {
    (use.reads * step.sent >= use.writes * step.received ? step.received : step.sent) = 0;
  }
  return TimeOf(&halving, use, request.bytes, costs);
}

// The root scatters blocks directly to each chip, or by halving, on chips that are used so.
Picoseconds ScatterFor(const ChipUse& use, const FormRequest& request, const SetLoads& loads,
                       const LinkCosts& costs) {
  if (loads.count() == 1) return Picoseconds(0);
  const Picoseconds direct = TimeOf(loads.FromRoot(/*whole=*/false), use, request.bytes, costs);
  return std::min(direct, ScatterByHalving(use, request, loads, costs));
}

// The root sends all to everybody.
Picoseconds WholeFromRoot(const FormRequest& request, const SetLoads& loads,
                          const LinkCosts& costs) {
  if (loads.count() == 1) return Picoseconds::max();
  const ChipUse use = NeuronUse(Algorithm::kMesh, Phase::kAllGather, request.ranks, request.banks);
  const ChipStages stages = NeuronStages(Algorithm::kMesh, Phase::kAllGather, request.bytes,
                                         loads.count(), request.ranks, request.banks, costs);
  return Sum(TimeOf(loads.FromRoot(/*whole=*/true), use, request.bytes, costs),
             stages.before + stages.after);
}

// The root scatters blocks, which are gathered.
Picoseconds Broadcast(const FormRequest& request, const SetLoads& loads, const LinkCosts& costs) {
  Picoseconds best = WholeFromRoot(request, loads, costs);
  for (const Algorithm algorithm : kOfNeuron) {
    const ChipUse use = NeuronUse(algorithm, Phase::kAllGather, request.ranks, request.banks);
    best = std::min(best, Sum(ScatterFor(use, request, loads, costs),
                              PhaseTime(algorithm, Phase::kAllGather, request, loads, costs)));
  }
  if (!MayTakeTrees(loads)) return best;
  const ChipUse use = NeuronUse(Algorithm::kTree, Phase::kAllGather, request.ranks, request.banks);
  const Picoseconds scatter = TimeOf(loads.FromRoot(/*whole=*/false), use, request.bytes, costs);
  if (scatter >= best) return best;
  const Picoseconds trees = TreesTime({Phase::kAllGather}, request, loads, costs, best - scatter);
  return std::min(best, Sum(scatter, trees));
}

}  // namespace

StepParts PartsOf(const StepLoad& step, const ChipUse& use, std::uint64_t bytes,
                  const LinkCosts& costs) {
  const auto whole = static_cast<double>(bytes);
  const auto hops = [&](std::uint64_t count) {
    return costs.hop * static_cast<Picoseconds::rep>(count);
  };
  StepParts parts{.start = StepStart(use, step.destinations, costs),
                  .links = Rounded(step.link * whole),
                  .hops = hops(step.hops)};
  const Picoseconds far = Rounded(step.far_link * whole);
  if (far + hops(step.far_hops) > parts.links + parts.hops) {
    parts.links = far;
    parts.hops = hops(step.far_hops);
  }
  if (costs.memory) {
    const double touched = (step.sent * use.reads + step.received * use.writes) * whole;
    parts.memory =
        Rounded(touched * 1e12 / static_cast<double>(hw::HbmRate(*costs.chip, use.banks)));
  }
  return parts;
}

Picoseconds StepTime(const StepLoad& step, const ChipUse& use, std::uint64_t bytes,
                     const LinkCosts& costs) {
  const StepParts parts = PartsOf(step, use, bytes, costs);
  const Picoseconds once = parts.start + std::max(parts.links + parts.hops, parts.memory);
  return once * static_cast<Picoseconds::rep>(step.count);
}

const StepLoads* StepsOf(Algorithm algorithm, const SetLoads& loads) {
  switch (algorithm) {
    case Algorithm::kMesh:
      return loads.Mesh();
    case Algorithm::kRdh:
      return loads.Halving();
    case Algorithm::kTree:
      return nullptr;
    default:
      return loads.AlongRings();
  }
}

PhaseChoice ChosenFor(Phase phase, const FormRequest& request, const SetLoads& loads,
                      const LinkCosts& costs) {
  return Choose(phase, request, loads, costs, loads.regular() ? 1000 : 0);
}

Picoseconds ScatterTime(const FormRequest& request, const SetLoads& loads, const LinkCosts& costs) {
  if (loads.count() == 1) return Picoseconds(0);
  const auto use = [&](Algorithm algorithm) {
    return NeuronUse(algorithm, Phase::kAllGather, request.ranks, request.banks);
  };
  const Picoseconds direct =
      TimeOf(loads.FromRoot(/*whole=*/false), use(Algorithm::kMesh), request.bytes, costs);
  return std::min(direct, ScatterByHalving(use(Algorithm::kRdh), request, loads, costs));
}

Picoseconds PhaseTime(Algorithm algorithm, Phase phase, const FormRequest& request,
                      const SetLoads& loads, const LinkCosts& costs) {
  const auto [operation, bytes, ranks, banks, element_bytes] = request;
  if (!Allows(algorithm, ranks)) return Picoseconds::max();
  if (algorithm == Algorithm::kTree && loads.count() > 1) {
    return TreesTime({phase}, request, loads, costs, Picoseconds::max());
  }
  const ChipStages stages =
      NeuronStages(algorithm, phase, bytes, loads.count(), ranks, banks, costs);
  const Picoseconds alone = stages.before + stages.after;
  if (loads.count() == 1) return alone;
  const ChipUse use = NeuronUse(algorithm, phase, ranks, banks);
  const StepLoads* steps = StepsOf(algorithm, loads);
  const std::uint64_t elements = bytes / element_bytes;
  if (steps == nullptr || algorithm != Algorithm::kMesh || elements >= loads.count()) {
    return Sum(TimeOf(steps, use, bytes, costs), alone);
  }
  const StepLoads thin = loads.ThinMesh(phase == Phase::kAllGather, elements);
  return TimeOf(&thin, use, bytes, costs) + alone;
}

Picoseconds FormTime(const FormRequest& request, const SetLoads& loads, const LinkCosts& costs) {
  switch (request.operation) {
    case Operation::kAllReduce:
      return AllReduce(request, loads, costs);
    case Operation::kAllGather:
      return FastestPhase(Phase::kAllGather, request, loads, costs);
    case Operation::kReduceScatter:
      return FastestPhase(Phase::kReduceScatter, request, loads, costs);
    case Operation::kBroadcast:
      return Broadcast(request, loads, costs);
    default: {
      const auto step = loads.Exchange(request.operation, request.ranks);
      if (!step) return Picoseconds::max();
      return StepTime(*step, {.banks = request.banks}, request.bytes, costs);
    }
  }
}

}  // namespace tahoma::collective

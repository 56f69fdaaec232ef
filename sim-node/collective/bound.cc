#include "sim-node/collective/bound.h"

#include "lib/collective/cuts.h"

namespace tahoma::sim {

collective::UnitLinks UnitLinksOf(const TorusLinks& links) {
  return {links.torus(),
          links.capacities(),
          {.step = links.timing().step,
           .hop = links.timing().hop,
           .efficiency_permille = links.timing().efficiency_permille}};
}

VirtualDuration LowerBound(Operation operation, const ChipSet& set, std::uint64_t bytes,
                           const TorusLinks& links) {
  return collective::LowerBound(operation, set.mask(), set.chips()[0], bytes, UnitLinksOf(links));
}

}  // namespace tahoma::sim

#include "sim-node/emulator/collective/plan/bound.h"

#include <algorithm>

#include "lib/collective/cuts.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"

namespace tahoma::sim {

collective::DomainLinks DomainLinksOf(const TorusLinks& links, const ChipCosts& costs) {
  const LinkTiming& timing = links.timing();
  return {links.torus(),
          links.capacities(),
          {.step = costs.dma_start ? std::max(timing.step, timing.chip->dma.start) : timing.step,
           .hop = timing.hop,
           .command = costs.cc_cores ? timing.chip->costs.command : VirtualDuration(0),
           .efficiency_permille = links.timing().efficiency_permille}};
}

VirtualDuration LowerBound(Operation operation, const ChipSet& set, std::uint64_t bytes,
                           const TorusLinks& links) {
  return collective::LowerBound(operation, set.mask(), set.chips()[0], bytes, DomainLinksOf(links));
}

}  // namespace tahoma::sim

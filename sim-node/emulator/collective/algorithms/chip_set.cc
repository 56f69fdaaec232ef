#include "sim-node/emulator/collective/algorithms/chip_set.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::sim {

using torus::ChipIndex;

collective::DomainLinks RatesOf(const TorusLinks& links, const collective::LinkCosts& costs) {
  return {links.torus(), links.capacities(), costs};
}

ChipSet::ChipSet(const TorusLinks& links, std::vector<ChipIndex> chips) : chips_(std::move(chips)) {
  TAHOMA_CHECK(!chips_.empty());
  for (const ChipIndex chip : chips_) {
    TAHOMA_CHECK(chip.value() < links.torus().chip_count() && (mask_ & MaskOf(chip)) == 0);
    mask_ |= MaskOf(chip);
  }
  through_ = links.IsConnected(mask_) ? mask_ : kAllChips;
  box_ = collective::BoxOf(links.torus(), mask_);
}

std::size_t ChipSet::PlaceOf(ChipIndex chip) const {
  const auto place = std::find(chips_.begin(), chips_.end(), chip);
  TAHOMA_CHECK(place != chips_.end());
  return static_cast<std::size_t>(place - chips_.begin());
}

}  // namespace tahoma::sim

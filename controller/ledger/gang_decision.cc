#include "controller/ledger/gang_decision.h"

namespace tahoma::controller {

std::string PlacementText(const DecidedSlice& slice) {
  if (slice.unit.empty() || slice.shape.empty()) return slice.unit;
  return slice.unit + " " + slice.shape + "+" + slice.origin;
}

}  // namespace tahoma::controller

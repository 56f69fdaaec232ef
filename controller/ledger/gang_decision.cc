#include "controller/ledger/gang_decision.h"

namespace tahoma::controller {

std::string PlacementText(const DecidedSlice& slice) {
  if (slice.unit.empty() || slice.shape.empty()) return slice.unit;
  return slice.unit + " " + slice.shape + "+" + slice.origin;
}

DecidedSlice ParsePlacement(std::string_view text) {
  DecidedSlice slice;
  const std::size_t space = text.find(' ');
  slice.unit = text.substr(0, space);
  if (space == std::string_view::npos) return slice;
  const std::size_t plus = text.find('+', space);
  if (plus == std::string_view::npos) return slice;
  slice.shape = text.substr(space + 1, plus - space - 1);
  slice.origin = text.substr(plus + 1);
  return slice;
}

}  // namespace tahoma::controller

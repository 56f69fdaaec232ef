#include "controller/reserve/usage.h"

#include <fmt/format.h>

namespace tahoma::controller {

std::string HoursText(std::int64_t chip_ms) {
  constexpr std::int64_t kHundredth = kChipMsOfHour / 100;
  const std::int64_t hundredths = (chip_ms + kHundredth / 2) / kHundredth;
  return fmt::format("{}.{:02}", hundredths / 100, hundredths % 100);
}

std::string UtilizationText(const BlockUsage& usage) {
  if (usage.total() <= 0) return "";
  const std::int64_t busy = usage.chip_ms.used + usage.chip_ms.lent;
  // At most 2^50 chip-milliseconds: a hundred times as many fit.
  return fmt::format("{}%", busy * 100 / usage.total());
}

}  // namespace tahoma::controller

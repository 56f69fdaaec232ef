#include "sim-node/emulator/engine/fault_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "lib/base/check.h"

namespace tahoma::sim {

FaultPlan::FaultPlan(std::vector<Fault> faults) : faults_(std::move(faults)) {
  std::stable_sort(faults_.begin(), faults_.end(), [](const Fault& a, const Fault& b) {
    return std::tie(a.at, a.target) < std::tie(b.at, b.target);
  });
}

FaultPlan FaultPlan::Draw(Rng& rng, const Choice& choice) {
  TAHOMA_CHECK(choice.count == 0 || (choice.targets > 0 && choice.horizon.count() > 0));
  std::vector<Fault> faults;
  const auto horizon = static_cast<std::uint64_t>(choice.horizon.count());
  for (std::uint32_t i = 0; i < choice.count; ++i) {
    const std::uint64_t at = rng.Below(horizon);
    Fault fault{.at = VirtualTime(VirtualDuration(static_cast<std::int64_t>(at))),
                .target = static_cast<std::uint32_t>(rng.Below(choice.targets))};
    if (rng.Chance(1, 2)) fault.permille = static_cast<std::uint16_t>(100 + rng.Below(801));
    faults.push_back(fault);
    if (!choice.repair) continue;
    const std::uint64_t repaired = at + rng.Below(horizon - at);
    faults.push_back({.at = VirtualTime(VirtualDuration(static_cast<std::int64_t>(repaired))),
                      .target = fault.target,
                      .permille = 1000});
  }
  return FaultPlan(std::move(faults));
}

FaultPlan FaultPlan::Flapping(const Flap& flap) {
  TAHOMA_CHECK(flap.down.count() > 0 && flap.down < flap.period);
  std::vector<Fault> faults;
  for (VirtualTime down = flap.from; down < flap.until; down += flap.period) {
    faults.push_back({.at = down, .target = flap.target});
    const VirtualTime up = down + flap.down;
    if (up < flap.until) {
      faults.push_back({.at = up, .target = flap.target, .permille = flap.up_permille});
    }
  }
  return FaultPlan(std::move(faults));
}

FaultPlan FaultPlan::And(const FaultPlan& other) const {
  std::vector<Fault> faults = faults_;
  faults.insert(faults.end(), other.faults_.begin(), other.faults_.end());
  return FaultPlan(std::move(faults));
}

}  // namespace tahoma::sim

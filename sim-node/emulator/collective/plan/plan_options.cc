#include "sim-node/emulator/collective/plan/plan_options.h"

#include "lib/base/status.h"

namespace tahoma::sim {

std::string_view Name(PlanMode mode) { return mode == PlanMode::kBest ? "best" : "aws"; }

absl::StatusOr<PlanMode> ParsePlanMode(std::string_view name) {
  for (const PlanMode mode : {PlanMode::kBest, PlanMode::kAws}) {
    if (name == Name(mode)) return mode;
  }
  return InvalidArgument("unknown mode \"{}\"; expected best or aws", name);
}

}  // namespace tahoma::sim

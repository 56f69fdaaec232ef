#include "sim-node/collective/link_views.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {

std::vector<NodeLinks> Newest(std::vector<NodeLinks> views) {
  std::map<int, NodeLinks> newest;
  for (NodeLinks& view : views) {
    const auto [entry, added] = newest.try_emplace(view.node, view);
    if (!added && view.epoch > entry->second.epoch) entry->second = std::move(view);
  }
  std::vector<NodeLinks> result;
  for (auto& [node, view] : newest) result.push_back(std::move(view));
  return result;
}

absl::StatusOr<LinkOutlook> LinkOutlook::Of(const TorusLinks& healthy, std::vector<NodeLinks> views,
                                            VirtualTime now) {
  LinkOutlook outlook(healthy, now);
  const int chips = healthy.torus().chip_count();
  for (const NodeLinks& view : Newest(std::move(views))) {
    for (const LinkState& state : view.unhealthy) {
      TAHOMA_RETURN_IF_ERROR(outlook.Apply(state));
    }
    if (chips < 64 && (view.dead >> static_cast<unsigned>(chips)) != 0) {
      return InvalidArgument("node {} says that chips are dead which a torus of {} does not have",
                             view.node, healthy.torus().ToString());
    }
    outlook.dead_ |= view.dead;
  }
  for (torus::ChipMask left = outlook.dead_; left != 0; left &= left - 1) {
    outlook.Kill(torus::ChipIndex(std::countr_zero(left)));
  }
  // A dead chip's links stay down.
  std::erase_if(outlook.flapping_, [&](const LinkState& state) {
    const torus::Hop hop = healthy.HopOf(state.link);
    return ((MaskOf(hop.from) | MaskOf(hop.to)) & outlook.dead_) != 0;
  });
  return outlook;
}

absl::Status LinkOutlook::Apply(const LinkState& state) {
  TAHOMA_RETURN_IF_ERROR(links_.SetPermille(state.link, state.permille));
  TAHOMA_RETURN_IF_ERROR(links_.SetLoss(state.link, state.loss_ppm));
  if (state.flapping == Flapping{}) return absl::OkStatus();
  TAHOMA_RETURN_IF_ERROR(CheckFlapping(state.flapping));
  flapping_.push_back(state);
  const VirtualDuration phase = now_.time_since_epoch() % state.flapping.period;
  return phase < state.flapping.down ? links_.SetPermille(state.link, 0) : absl::OkStatus();
}

void LinkOutlook::Kill(torus::ChipIndex chip) {
  for (const Port port : kAllPorts) {
    const LinkId link = TorusLinks::IdOf(chip, port.axis, port.direction);
    if (links_.Exists(link)) TAHOMA_CHECK(links_.SetCablePermille(link, 0).ok());
  }
}

absl::Status LinkOutlook::CheckAlive(torus::ChipMask chips) const {
  if ((chips & dead_) == 0) return absl::OkStatus();
  return Aborted("NRT_EXEC_HW_ERR_COLLECTIVES ({}): chip {} is dead", kNrtExecHwErrCollectives,
                 std::countr_zero(chips & dead_));
}

FaultPlan LinkOutlook::ChangesWithin(VirtualDuration until) const {
  const VirtualDuration now = now_.time_since_epoch();
  std::vector<Fault> changes;
  for (const LinkState& state : flapping_) {
    // From the beginning of the period that now lies in.
    const FaultPlan plan = FaultPlan::Flapping({.target = state.link,
                                                .from = now_ - now % state.flapping.period,
                                                .until = now_ + until,
                                                .period = state.flapping.period,
                                                .down = state.flapping.down,
                                                .up_permille = state.permille});
    for (Fault change : plan.faults()) {
      if (change.at <= now_) continue;
      change.at -= now;
      changes.push_back(change);
    }
  }
  return FaultPlan(std::move(changes));
}

absl::StatusOr<ScheduleTimes> LinkOutlook::TimesOf(const Schedule& schedule) const {
  VirtualDuration until{};
  for (const LinkState& state : flapping_) until = std::max(until, state.flapping.period);
  // Changes after the end are of no consequence, so the first guess that reaches the end is right.
  while (true) {
    TAHOMA_ASSIGN_OR_RETURN(auto times,
                            TimeSchedules({&schedule}, links_, {}, ChangesWithin(until)));
    if (IsSteady() || times[0].end.time_since_epoch() <= until) return std::move(times[0]);
    until = 2 * times[0].end.time_since_epoch();
  }
}

}  // namespace tahoma::sim

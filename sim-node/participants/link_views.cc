#include "sim-node/participants/link_views.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

// Computing the effect of more changes on an operation takes too long.
constexpr std::int64_t kMaxChanges = 1'000'000;
// Most operations end within this time.
constexpr VirtualDuration kFirstGuess = Microseconds(1000);
// A communicator's clock ends at 2^62 ps (kLastTime of participant.h); no sum may run over.
constexpr VirtualDuration kLongestOutlook =
    VirtualDuration(std::int64_t{1} << 62U) - 2 * kMaxFlapPeriod;

std::int64_t ChangesOf(const std::vector<LinkState>& flapping, VirtualDuration until) {
  std::int64_t changes = 0;
  for (const LinkState& state : flapping) changes += 2 * (until / state.flapping.period + 1);
  return changes;
}

// The longest time, not beyond `most`, whose changes can be computed; zero when there is none.
VirtualDuration LongestOutlook(const std::vector<LinkState>& flapping, VirtualDuration most) {
  VirtualDuration possible{};
  VirtualDuration impossible = most + VirtualDuration(1);
  while (impossible - possible > VirtualDuration(1)) {
    const VirtualDuration middle = possible + (impossible - possible) / 2;
    (ChangesOf(flapping, middle) <= kMaxChanges ? possible : impossible) = middle;
  }
  return possible;
}

// Returns the changes before `until`; from `until` on every link is up. Such times are wrong for an
// operation that goes beyond `until`.
FaultPlan UpFrom(VirtualDuration until, const std::vector<LinkState>& flapping,
                 const FaultPlan& changes) {
  std::vector<Fault> ups;
  for (const LinkState& state : flapping) {
    ups.push_back({.at = VirtualTime(until), .target = state.link, .permille = state.permille});
  }
  return changes.And(FaultPlan(std::move(ups)));
}

}  // namespace

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

absl::StatusOr<LinkOutlook> LinkOutlook::Of(const Fabric& healthy, std::vector<NodeLinks> views,
                                            VirtualTime now) {
  LinkOutlook outlook(healthy, now);
  for (const NodeLinks& view : Newest(std::move(views))) {
    for (const LinkState& state : view.unhealthy) {
      TAHOMA_RETURN_IF_ERROR(outlook.Apply(state));
    }
    for (const torus::ChipIndex chip : view.efa_down) {
      TAHOMA_RETURN_IF_ERROR(outlook.fabric_.SetNicPermille(chip, 0));
    }
    outlook.dead_.insert(view.dead.begin(), view.dead.end());
  }
  for (const torus::ChipIndex chip : outlook.dead_) {
    TAHOMA_RETURN_IF_ERROR(outlook.fabric_.SetChipPermille(chip, 0));
  }
  // A dead chip's links stay down.
  std::erase_if(outlook.flapping_,
                [&](const LinkState& state) { return outlook.IsOfTheDead(state.link); });
  return outlook;
}

absl::Status LinkOutlook::Apply(const LinkState& state) {
  TAHOMA_RETURN_IF_ERROR(fabric_.SetPermille(state.link, state.permille));
  if (state.loss_ppm != 0) TAHOMA_RETURN_IF_ERROR(fabric_.SetLoss(state.link, state.loss_ppm));
  if (state.flapping == Flapping{}) return absl::OkStatus();
  TAHOMA_RETURN_IF_ERROR(CheckFlapping(state.flapping));
  flapping_.push_back(state);
  const VirtualDuration phase = now_.time_since_epoch() % state.flapping.period;
  return phase < state.flapping.down ? fabric_.SetPermille(state.link, 0) : absl::OkStatus();
}

bool LinkOutlook::IsOfTheDead(LinkId link) const {
  const auto place = fabric_.Find(link);
  if (!place.ok() || place->island == fabric_.domain_count()) return false;
  const torus::Hop hop = fabric_.domain(place->island).HopOf(place->link);
  return dead_.contains(Fabric::ChipOf(place->island, hop.from.value())) ||
         dead_.contains(Fabric::ChipOf(place->island, hop.to.value()));
}

absl::Status LinkOutlook::CheckAlive(const std::vector<Member>& members) const {
  for (const Member& member : members) {
    if (!dead_.contains(member.chip)) continue;
    const DomainChip place = Fabric::Split(member.chip);
    return Aborted("NRT_EXEC_HW_ERR_COLLECTIVES ({}): {}chip {} is dead", kNrtExecHwErrCollectives,
                   fabric_.domain_count() == 1 ? "" : fmt::format("domain {} ", place.domain),
                   place.chip);
  }
  return absl::OkStatus();
}

FaultPlan LinkOutlook::ChangesWithin(VirtualDuration until) const {
  const VirtualDuration now = now_.time_since_epoch();
  std::vector<Fault> changes;
  for (const LinkState& state : flapping_) {
    // Begins at the start of the present period.
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
  TAHOMA_ASSIGN_OR_RETURN(auto times, TimesOf(std::vector<const Schedule*>{&schedule}));
  return std::move(times[0]);
}

absl::StatusOr<std::vector<ScheduleTimes>> LinkOutlook::TimesOf(
    const std::vector<const Schedule*>& schedules) const {
  if (IsSteady()) return TimeSchedules(schedules, fabric_);
  const VirtualDuration longest = LongestOutlook(flapping_, kLongestOutlook);
  VirtualDuration until = std::min(kFirstGuess, longest);
  // Changes after the end do not matter, so the first guess beyond the end is right.
  while (until > VirtualDuration{}) {
    TAHOMA_ASSIGN_OR_RETURN(
        auto times,
        TimeSchedules(schedules, fabric_, {}, UpFrom(until, flapping_, ChangesWithin(until))));
    VirtualDuration end{};
    for (const ScheduleTimes& one : times) end = std::max(end, one.end.time_since_epoch());
    if (end <= until) return times;
    if (until == longest) break;
    until = 2 * std::min(end, longest / 2 + VirtualDuration(1));
    until = std::min(until, longest);
  }
  return ResourceExhausted(
      "flapping links change {} times within {} ps and the operation goes on; at most {} changes "
      "can be worked out",
      ChangesOf(flapping_, until), until.count(), kMaxChanges);
}

}  // namespace tahoma::sim

#include "controller/core/queue/preemption.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "controller/plan/decision.h"

namespace tahoma::controller {
namespace {

GangRef RefOf(const GangSpec& gang) { return {gang.key, gang.single_pod}; }

}  // namespace

std::size_t Preemption::CountBefore(const ServicePlace& place) const {
  return static_cast<std::size_t>(std::distance(kept_.begin(), kept_.lower_bound(place)));
}

ClusterState Preemption::ViewOf(const ClusterState& cluster, const ServicePlace& place) const {
  ClusterState view = cluster;
  for (auto kept = kept_.begin(); kept != kept_.lower_bound(place); ++kept) {
    for (const auto& holding : kept->second.holdings) view.Hold(holding);
  }
  return view;
}

void Preemption::OnSettled(const GangRef& ref) {
  const auto place = place_of_.find(ref);
  if (place == place_of_.end()) return;
  kept_.erase(place->second);
  place_of_.erase(place);
  capacity_freed_ = true;
}

bool Preemption::IsWaitedFor(const Kept& kept) const {
  return std::any_of(kept.ending.begin(), kept.ending.end(),
                     [&](RunId run) { return runs_.FindRun(run) != nullptr; });
}

void Preemption::OnBlocked(const Queue& blocked, const ClusterState& cluster, WallTime now) {
  Queue group;  // of one priority
  for (const auto& gang : blocked) {
    if (!gang->reservation.empty()) continue;
    const GangRef ref = RefOf(*gang);
    if (const auto known = place_of_.find(ref); known != place_of_.end()) {
      if (known->second == PlaceOf(ref, *gang) && IsWaitedFor(kept_.at(known->second))) continue;
      OnSettled(ref);  // what has ended was not enough
    }
    if (!group.empty() && group.back()->priority != gang->priority) {
      Search(std::exchange(group, {}), cluster, now);
    }
    group.push_back(gang);
  }
  Search(std::move(group), cluster, now);
}

// Looks beyond one priority after the other until each gang of the group has found a place.
void Preemption::Search(Queue group, const ClusterState& cluster, WallTime now) {
  const auto& all = runs_.preemptible();
  if (group.empty() || all.empty() || all.begin()->first >= group.front()->priority) return;
  const std::int32_t priority = group.front()->priority;
  ClusterState fleet = ViewOf(cluster, PlaceOf(RefOf(*group.back()), *group.back()));
  Runs gone;
  auto next = all.begin();
  const auto is_lower = [&] {
    return next != all.end() && next->first < priority && gone.size() < kRunsMost;
  };
  for (int tier = 1; tier <= kTiersMost && is_lower() && !group.empty(); ++tier) {
    for (const std::int32_t of = next->first;
         is_lower() && (next->first == of || tier == kTiersMost); ++next) {
      ReleaseDecided(runs_.FindRun(next->second)->decision(), fleet);
      gone.insert(next->second);
    }
    Queue rest;
    for (const Decision& decision : plan_(fleet, group, now, Explaining::kNone)) {
      if (!decision.placement || kept_.size() >= kKeptMost) {
        rest.push_back(decision.gang);
        continue;
      }
      Keep(*decision.gang, *decision.placement, gone, cluster, now);
      for (auto& holding : decision.placement->Holdings(*decision.gang, now)) {
        fleet.Hold(std::move(holding));
      }
    }
    group = std::move(rest);
  }
}

// Returns the runs among those that have chips of the holding, wholly or in part: cores of two
// sizes exclude each other on one chip.
Preemption::Runs Preemption::HoldersOf(const Holding& holding, const Runs& among,
                                       const ClusterState& cluster) const {
  Runs holders;
  for (const Holding::HeldDevice& device : holding.devices) {
    const std::optional<NodeId> id = cluster.FindNode(device.node);
    if (device.admin_access || !id) continue;
    const NodeState& node = cluster.node(*id);
    for (const auto& other : node.holdings) {
      const GangRun* run = runs_.FindHolder(other->claim);
      if (run == nullptr || !among.contains(run->id())) continue;
      const bool shared = (ChipsOf(*other, *node.node) & node.node->ChipsNamed(device.device)) != 0;
      if (shared) holders.insert(run->id());
    }
  }
  return holders;
}

void Preemption::Keep(const GangSpec& gang, const Placement& placement, const Runs& gone,
                      const ClusterState& cluster, WallTime now) {
  Kept kept;
  for (const auto& holding : placement.Holdings(gang, now)) {
    kept.ending.merge(HoldersOf(*holding, gone, cluster));
    Holding place = *holding;
    place.claim_uid = "kept for " + place.claim_uid;  // others may use the same claim
    kept.holdings.push_back(std::make_shared<const Holding>(std::move(place)));
  }
  if (kept.ending.empty()) return;  // nobody is in its way
  for (const RunId run : kept.ending) {
    if (runs_.FindRun(run)->ending()) continue;
    runs_.End(
        run, EndCause::kPreempted,
        fmt::format("{} of priority {} needs its hardware", Describe(RefOf(gang)), gang.priority));
  }
  const GangRef ref = RefOf(gang);
  const ServicePlace place = PlaceOf(ref, gang);
  place_of_[ref] = place;
  kept_[place] = std::move(kept);
}

}  // namespace tahoma::controller

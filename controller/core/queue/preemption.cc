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

void Preemption::OnSettled(const GangRef& ref) {
  if (ending_.erase(ref) > 0) promises_.OnSettled(ref);
}

bool Preemption::IsWaitedFor(const Runs& ending) const {
  return std::any_of(ending.begin(), ending.end(),
                     [&](RunId run) { return runs_.FindRun(run) != nullptr; });
}

void Preemption::OnBlocked(const Queue& blocked, const ClusterState& cluster, WallTime now) {
  Queue group;  // of one priority
  for (const auto& gang : blocked) {
    if (!gang->reservation.empty()) continue;
    const GangRef ref = RefOf(*gang);
    if (const auto known = ending_.find(ref); known != ending_.end()) {
      const Ending& ending = known->second;
      if (ending.place == PlaceOf(ref, *gang) && IsWaitedFor(ending.runs)) continue;
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
  const GangSpec& last = *group.back();
  ClusterState fleet =
      promises_.ViewOf(cluster, promises_.Binding(PlaceOf(RefOf(last), last), last, now));
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
      if (!decision.placement) {
        rest.push_back(decision.gang);
        continue;
      }
      Keep(decision.gang, *decision.placement, gone, cluster, now);
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

void Preemption::Keep(const std::shared_ptr<const GangSpec>& gang, const Placement& placement,
                      const Runs& gone, const ClusterState& cluster, WallTime now) {
  const GangRef ref = RefOf(*gang);
  Ending ending{.place = PlaceOf(ref, *gang), .runs = {}};
  Promise promise;
  promise.kind = PromiseKind::kPreempt;
  promise.holder = gang->Describe();
  promise.place = placement.ToString();
  promise.holdings = PromisedHoldings(*gang, placement, now);
  for (const auto& holding : promise.holdings) {
    ending.runs.merge(HoldersOf(*holding, gone, cluster));
  }
  if (ending.runs.empty()) return;  // nobody is in its way
  promises_.Keep(gang, std::move(promise));
  if (promises_.Find(ref) == nullptr) return;  // there are promises enough
  for (const RunId run : ending.runs) {
    if (runs_.FindRun(run)->ending()) continue;
    runs_.End(run, EndCause::kPreempted,
              fmt::format("{} of priority {} needs its hardware", Describe(ref), gang->priority));
  }
  ending_[ref] = std::move(ending);
}

}  // namespace tahoma::controller

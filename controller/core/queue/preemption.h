// Ends preemptible gangs of lower priority for a gang that finds no place otherwise.
//
//   Preemption preemption(runs, plan);
//   preemption.OnBlocked({gang}, cluster, now);     // the planner found no place for it
//   Plan(preemption.ViewOf(cluster, place));        // for gangs behind it: its place is held
//   preemption.OnSettled(ref);                      // it has a place, or waits for something else
//
// Those of the lowest priorities end, and none when that would not help. The gang gets the place
// that the planner finds without them: until the last of them has gone, that is kept from all gangs
// behind it in the order of service.
//
// Scope: which runs end, and for whom. Hardware that is lent by Capacity Blocks: lending.h.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "controller/core/commit/gang_runs.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/queue/scheduling_queue.h"
#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class Preemption {
 public:
  // The most gangs that others are ended for at one time: every gang behind them is planned in a
  // view that holds their places.
  static constexpr std::size_t kKeptMost = 64;
  // The most runs that one search looks beyond, the lowest priorities first: each is taken out of
  // a copy of the fleet.
  static constexpr std::size_t kRunsMost = 1024;
  // The most searches for gangs of one priority, each beyond one priority more; the last is beyond
  // all that are left.
  static constexpr int kTiersMost = 8;

  // `runs` must outlive it.
  Preemption(GangRuns& runs, PlanFunction plan) : runs_(runs), plan_(std::move(plan)) {}

  // Ends what lets these gangs be placed. They are blocked for want of capacity, and in the order
  // of service.
  void OnBlocked(const Queue& blocked, const ClusterState& cluster, WallTime now);
  // The gang waits for nobody's end any more.
  void OnSettled(const GangRef& ref);
  // Returns whether places are no longer kept for somebody since the last call.
  bool DrainCapacityFreed() { return std::exchange(capacity_freed_, false); }

  // Returns how many gangs before that place something is kept for.
  std::size_t CountBefore(const ServicePlace& place) const;
  // Returns the fleet as gangs from that place on see it: what is kept for those before is held.
  ClusterState ViewOf(const ClusterState& cluster, const ServicePlace& place) const;

 private:
  using Runs = std::set<RunId>;
  struct Kept {
    std::vector<std::shared_ptr<const Holding>> holdings;
    Runs ending;
  };

  bool IsWaitedFor(const Kept& kept) const;
  void Search(Queue group, const ClusterState& cluster, WallTime now);
  void Keep(const GangSpec& gang, const Placement& placement, const Runs& gone,
            const ClusterState& cluster, WallTime now);
  Runs HoldersOf(const Holding& holding, const Runs& among, const ClusterState& cluster) const;

  GangRuns& runs_;
  const PlanFunction plan_;
  std::map<ServicePlace, Kept> kept_;
  absl::flat_hash_map<GangRef, ServicePlace> place_of_;
  bool capacity_freed_ = false;
};

}  // namespace tahoma::controller

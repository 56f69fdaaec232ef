// Ends preemptible gangs of lower priority for a gang that finds no place otherwise.
//
//   Preemption preemption(runs, promises, plan);
//   preemption.OnBlocked({gang}, cluster, now);     // the planner found no place for it
//   preemption.OnSettled(ref);                      // it has a place, or waits for something else
//
// Those of the lowest priorities end, and none when that would not help. The gang is promised the
// place that the planner finds without them (promises.h): until the last of them has gone, that is
// kept from all gangs behind it in the order of service.
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
#include "controller/core/queue/promises.h"
#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class Preemption {
 public:
  // The most runs that one search looks beyond, the lowest priorities first: each is taken out of
  // a copy of the fleet.
  static constexpr std::size_t kRunsMost = 1024;
  // The most searches for gangs of one priority, each beyond one priority more; the last is beyond
  // all that are left.
  static constexpr int kTiersMost = 8;

  // `runs` and `promises` must outlive it.
  Preemption(GangRuns& runs, Promises& promises, PlanFunction plan)
      : runs_(runs), promises_(promises), plan_(std::move(plan)) {}

  // Ends what lets these gangs be placed. They are blocked for want of capacity, and in the order
  // of service.
  void OnBlocked(const Queue& blocked, const ClusterState& cluster, WallTime now);
  // The gang waits for nobody's end any more.
  void OnSettled(const GangRef& ref);

 private:
  using Runs = std::set<RunId>;

  bool IsWaitedFor(const Runs& ending) const;
  void Search(Queue group, const ClusterState& cluster, WallTime now);
  void Keep(const std::shared_ptr<const GangSpec>& gang, const Placement& placement,
            const Runs& gone, const ClusterState& cluster, WallTime now);
  Runs HoldersOf(const Holding& holding, const Runs& among, const ClusterState& cluster) const;

  GangRuns& runs_;
  Promises& promises_;
  const PlanFunction plan_;
  struct Ending {
    ServicePlace place;  // of the gang that they end for
    Runs runs;
  };
  absl::flat_hash_map<GangRef, Ending> ending_;
};

}  // namespace tahoma::controller

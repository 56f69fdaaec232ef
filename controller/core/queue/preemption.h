// Ends preemptible gangs of lower priority for a gang that finds no place otherwise.
//
//   Preemption preemption(runs, promises, plan);
//   preemption.OnBlocked({gang}, cluster, now);     // the planner found no place for it
//   preemption.OnSettled(ref);                      // it has a place, or waits for something else
//
// The lowest priorities end first, of equal priorities the fewest runs, then the runs that lose
// least work (plan/victims.h). No run ends in vain, before its minRuntime is over, beyond a
// PodDisruptionBudget (budget_room.h), or twice for the same gang. The gang is promised the
// planner's place in the fleet without the ended runs (promises.h): until the last run has gone,
// the place is kept from all gangs behind.
//
// Priority counts inside a queue. A gang of a queue within its guarantee takes hardware back from
// preemptible gangs of queues beyond a guarantee, whatever the priority (reclaim).
//
// Scope: which runs end, and for whom. Hardware that is lent by Capacity Blocks: lending.h.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "controller/core/commit/gang_runs.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/queue/budget_room.h"
#include "controller/core/queue/promises.h"
#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "controller/plan/victims.h"
#include "controller/share/queue_shares.h"
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

  // How often budgets keep a choice from being taken, and how long a changed budget waits.
  static constexpr int kChoicesMost = 8;
  static constexpr std::chrono::seconds kBudgetPause{1};

  // `runs`, `promises` and `shares`, which may be nullptr, must outlive it.
  Preemption(GangRuns& runs, Promises& promises, PlanFunction plan,
             const QueueShares* shares = nullptr)
      : runs_(runs), promises_(promises), plan_(std::move(plan)), shares_(shares) {}

  // Ends runs so that the gangs can be placed: gangs blocked for want of capacity, in the order of
  // service.
  void OnBlocked(const Queue& blocked, const ClusterState& cluster, WallTime now);
  // Returns the room that budgets leave beside the runs that were ended for others.
  BudgetRoom RoomOfBudgets();
  // PodDisruptionBudgets have changed.
  void OnBudgets(WallTime now);
  // The gang waits for nobody's end any more.
  void OnSettled(const GangRef& ref);
  // Takes the gangs for which more runs may end than before: a minRuntime is over, or budgets have
  // changed.
  std::vector<GangRef> DrainDue(WallTime now);
  // The time at which DrainDue has something without any news.
  std::optional<WallTime> wake() const;

 private:
  using Runs = std::set<RunId>;

  struct Field;

  bool IsWaitedFor(const Runs& ending) const;
  // Returns nullptr without any queue.
  const QueueShares* Queues() const {
    return shares_ != nullptr && shares_->tree().any() ? shares_ : nullptr;
  }
  void Unkeep(const GangRef& ref);
  void Search(Queue group, const ClusterState& cluster, WallTime now);
  void AddRun(RunId id, WallTime now, Field& field) const;
  std::optional<Victims> ChooseWithin(const std::shared_ptr<const GangSpec>& gang, Field& field,
                                      std::vector<RunningGang>& among,
                                      std::vector<std::size_t>& index, WallTime now) const;
  bool SearchFor(const std::shared_ptr<const GangSpec>& gang, const ClusterState& cluster,
                 WallTime now, Field& field);
  void WaitUntil(const GangRef& ref, WallTime when);
  void Keep(const std::shared_ptr<const GangSpec>& gang, const Placement& placement, Runs ending,
            WallTime now);
  Runs HoldersOf(const Holding& holding, const Runs& among, const ClusterState& cluster) const;

  GangRuns& runs_;
  Promises& promises_;
  const PlanFunction plan_;
  const QueueShares* const shares_;
  struct Ending {
    ServicePlace place;  // of the gang that others end for
    Runs runs;
  };
  absl::flat_hash_map<GangRef, Ending> ending_;
  // The gangs that were ended for each gang that waits.
  absl::flat_hash_map<GangRef, std::set<GangRef>> ended_for_;
  absl::flat_hash_map<GangRef, WallTime> due_of_;
  std::set<std::pair<WallTime, GangRef>> due_;
  std::set<GangRef> by_budget_;  // wait for budgets
  Runs ended_;                   // by this class, and still there
};

}  // namespace tahoma::controller

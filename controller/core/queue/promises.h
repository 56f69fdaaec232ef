// Keeps hardware for the first waiting gangs: a later gang begins only where no earlier gang begins
// later because of the start (conservative backfill).
//
// A blocked gang is promised the earliest start and place that a Timeline of the runs' ends has
// beside the promises of others. From then on the start moves only forward, unless a gang that is
// served earlier comes, hardware fails, or a run goes on beyond the run's end.
//
// Where no end is known, passing work is counted: the chips of gangs that are served later and have
// begun since, by their time. After as much work as the gang's patience (kPatience, or the queue's)
// the place where others have run longest is kept for the gang, as the place comes free.
//
// Promises of maintenance windows are fixed: a fixed promise binds every gang that would run at a
// time of the promise, and promises to gangs keep away from fixed promises.
//
// A gang without a promise is bound by the promises of gangs before and of gangs that others end
// for, a gang with a promise by all others. A kept place binds all but the holder, whether the
// holder waits yet or not (moves.h). The first kMost gangs have promises or are counted for.
// Promises are not journalled: a restart finds them anew before anything is planned, and counts
// passing work anew.
//
// Scope: what is kept and for whom. Who is next: scheduling_queue.h.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/commit/gang_runs.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/queue/service_place.h"
#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "controller/timeline/kept_fleet.h"
#include "controller/timeline/promise.h"
#include "controller/timeline/timeline.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// Returns the holdings of a promise of that placement.
std::vector<std::shared_ptr<const Holding>> PromisedHoldings(const GangSpec& gang,
                                                             const Placement& placement,
                                                             WallTime now);

// Hardware that is kept for a gang, under a name, until somebody gives the hardware back.
struct KeptPlace {
  std::shared_ptr<const Promise> promise;
  std::optional<GangRef> holder = {};
  // Gangs with slices of so many chips may have the place, too; 0: no others may.
  std::int64_t open_to = 0;
};

class Promises {
 public:
  static constexpr std::size_t kMost = 64;
  // The patience without a queue's: the gang's own chips, for that time.
  static constexpr std::chrono::hours kPatience{24};
  // A start that is late by so much keeps its place; a later one may find a better place.
  static constexpr std::chrono::minutes kMovedMost{2};
  // How often an earlier start is looked for, and for how many gangs at a time.
  static constexpr std::chrono::seconds kImprovePause{1};
  static constexpr std::size_t kImproveMost = 8;

  // `runs` must outlive it.
  Promises(const GangRuns& runs, PlanFunction plan) : runs_(runs), plan_(std::move(plan)) {}

  // Whether gangs of other queues are bound as gangs behind are: priority counts inside a queue.
  void SetByQueue(bool by_queue) { by_queue_ = by_queue; }
  // Takes all fixed promises, each of the kind kMaintenance and not over, in place of the last.
  struct FixedPromise {
    std::shared_ptr<const Promise> promise;
    std::vector<DomainId> domains;  // of the promised hardware
  };
  void SetFixed(std::vector<FixedPromise> fixed, const ClusterState& cluster, WallTime now);
  // Mends the promises that the fleet as it is now breaks, and looks for earlier starts.
  void Step(const ClusterState& cluster, WallTime now);
  // The planner found no place for the gang now.
  void OnBlocked(const std::shared_ptr<const GangSpec>& gang, const ClusterState& cluster,
                 WallTime now);
  // The gang waits for hardware no more.
  void OnSettled(const GangRef& ref);
  // The gang begins there.
  void OnBegun(const GangSpec& gang, const Placement& placement, const ClusterState& cluster,
               WallTime now);
  // The gang's run has news.
  void OnRun(const GangRef& ref, WallTime now);
  // Promises the gang a place that others are ended for. Returns whether there was room for that.
  bool Keep(const std::shared_ptr<const GangSpec>& gang, Promise promise);

  // Keeps hardware under that name, in place of the last. Who is promised some of the hardware for
  // later is promised another start.
  void KeepPlace(const std::string& name, KeptPlace what, const ClusterState& cluster,
                 WallTime now);
  // Ignores unknown names.
  void GiveUpPlace(const std::string& name);

  // Returns whether OnBlocked would be news: the gang has no entry, and may have one.
  bool Wants(const ServicePlace& place) const;
  bool Has(const GangRef& ref) const { return place_of_.contains(ref); }
  bool full() const { return entries_.size() >= kMost; }

  // The promises that bind a gang.
  struct Bound {
    std::vector<std::uint64_t> gangs = {};  // by numbers that are not used twice
    std::size_t fixed = 0;                  // so many fixed promises, the first to begin

    bool empty() const { return gangs.empty() && fixed == 0; }
    friend bool operator==(const Bound&, const Bound&) = default;
  };
  // Returns the promises that bind a gang that begins now.
  Bound Binding(const ServicePlace& place, const GangSpec& gang, WallTime now) const;
  // Returns the fixed promises that bind such a gang, in its Capacity Block, too.
  Bound BindingFixed(const GangSpec& gang, WallTime now) const;
  // Returns the fixed promises that have begun.
  Bound BegunFixed(WallTime now) const;
  // Returns the fleet with the hardware of these promises held.
  ClusterState ViewOf(const ClusterState& cluster, const Bound& binding) const;

  // Takes the gangs whose time has come, and whose place is free.
  std::vector<GangRef> DrainDue() { return std::exchange(due_, {}); }
  // Takes the domains with hardware that is promised no more.
  std::set<DomainId> DrainFreed() { return std::exchange(freed_, {}); }
  // Returns the gang's promise; nullptr without one.
  std::shared_ptr<const Promise> Find(const GangRef& ref) const;
  // All promises: the fixed, then those to gangs in the order of service.
  std::vector<std::shared_ptr<const Promise>> All() const;
  // When Step has something to do without any news.
  std::optional<WallTime> wake(WallTime now) const;

 private:
  // The work that passes a gang without a known start.
  struct Passing {
    absl::flat_hash_map<GangRef, std::int64_t> gangs;  // eighths of chips that run now
    std::int64_t rate = 0;                             // their sum
    double done = 0;                                   // eighths of chips times seconds, until `at`
    double most = 0;                                   // the patience, likewise
    WallTime at{};
  };
  struct Entry {
    std::shared_ptr<const GangSpec> gang;
    std::shared_ptr<const Promise> promise;  // nullptr: counts what passes
    std::uint64_t number = 0;
    std::optional<WallTime> due = {};  // when DrainDue told of the promise
    std::vector<DomainId> domains = {};
    Passing passing = {};
  };
  using Entries = std::map<ServicePlace, Entry>;
  using FixedList = std::vector<std::shared_ptr<const Promise>>;
  // The fixed promises.
  struct Fixed {
    FixedList all = {};  // in the order of their beginnings
    absl::flat_hash_map<std::shared_ptr<const Promise>, std::vector<DomainId>> domains = {};
    std::map<DomainId, FixedList> in_domain = {};
    // The fleet with the first so many fixed promises held, for the last numbers asked for.
    std::vector<std::pair<std::size_t, KeptFleet>> fleets = {};
  };
  static constexpr std::size_t kFleetsMost = 4;
  struct NumberedPlace {
    KeptPlace place;
    std::uint64_t number = 0;
    std::vector<DomainId> domains = {};
  };

  Timeline TimelineOf(const Entry& entry, const ServicePlace& place, const ClusterState& cluster,
                      WallTime now) const;
  const ClusterState& FleetWithFixed(const ClusterState& cluster, std::size_t count) const;
  std::size_t FixedBefore(WallTime gone) const;
  bool MeetsFixed(const Entry& entry, const Promise& promise, WallTime now) const;
  void Search(const ServicePlace& place, Entry& entry, const ClusterState& cluster, WallTime now);
  void Reconcile(const ServicePlace& place, const Entry& entry, const ClusterState& cluster,
                 WallTime now);
  void MoveOn(const ServicePlace& place, Entry& entry, WallTime from, const ClusterState& cluster,
              WallTime now);
  void TellDue(const ClusterState& cluster, WallTime now);
  void Mend(const ServicePlace& place, Entry& entry, const ClusterState& cluster, WallTime now);
  void Set(Entry& entry, std::shared_ptr<const Promise> promise, const ClusterState& cluster);
  void Improve(const ServicePlace& place, Entry& entry, const ClusterState& cluster, WallTime now);
  void ImproveSome(const ClusterState& cluster, WallTime now);
  void EndPatience(const ServicePlace& place, Entry& entry, const ClusterState& cluster,
                   WallTime now);
  std::optional<WallTime> PatienceEnd(const Entry& entry) const;
  static void SetGang(Entry& entry, const std::shared_ptr<const GangSpec>& gang);
  bool MakeRoomFor(const ServicePlace& place);
  bool Precedes(const ServicePlace& holder, const Entry& entry, const ServicePlace& place,
                const GangSpec& gang) const;
  static bool IsFor(const KeptPlace& kept, const GangRef& ref, const GangSpec& gang);
  static void CountUntil(Passing& passing, WallTime now);

  const GangRuns& runs_;
  const PlanFunction plan_;
  Entries entries_;
  absl::flat_hash_map<GangRef, ServicePlace> place_of_;
  std::map<std::uint64_t, std::shared_ptr<const Promise>> by_number_;
  std::map<DomainId, std::set<ServicePlace>> in_domain_;
  std::uint64_t numbers_ = 0;
  std::vector<GangRef> due_;
  std::set<DomainId> freed_;
  mutable Fixed fixed_;  // no answer depends on `fleets`
  ClusterState seen_;
  bool by_queue_ = false;
  bool may_improve_ = false;
  WallTime improved_{};
  std::optional<ServicePlace> improved_last_;
  std::map<std::string, NumberedPlace> kept_places_;
};

}  // namespace tahoma::controller

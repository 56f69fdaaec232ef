// Gangs whose run was ended, and the hardware that is kept for their next pods.
//
//   Successors successors(std::chrono::minutes(5));
//   successors.Remember(ref, {.cause = EndCause::kMemberLost, .reason = "pod train-2 failed"});
//   successors.Keep(ref, freed, now, cluster);           // nobody else gets these devices
//   Plan(successors.ViewOf(cluster, ref));               // the gang itself may have them
//   successors.GiveBack(ref, cluster);                   // the gang has a place again
//
// Kept devices are held in the ClusterState by holdings without a claim. They are free again after
// the given time. A gang that lost a member goes before others of its priority until the gang has
// a place.
//
// Scope: soft state. A controller that starts has none of it, and plans such a gang as any other.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/commit/gang_run.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/model/cluster.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class Successors {
 public:
  // The pause before a gang that was undone is planned again.
  static constexpr std::chrono::seconds kPause{2};
  // The same when a pod was not ready in time; doubled with every such end in a row.
  static constexpr std::chrono::seconds kStartPause{10};
  static constexpr std::chrono::seconds kStartPauseMost{600};

  struct RunEnd {
    EndCause cause = EndCause::kFailed;
    std::string reason;
    bool started = false;     // each pod of the run was ready once
    bool controlled = false;  // a pod of the run had an owner who makes pods anew
  };
  struct LastEnd : RunEnd {
    int unstarted = 0;  // the number of runs in a row that ended as kNotStarted
  };
  using Holdings = std::vector<std::shared_ptr<const Holding>>;

  explicit Successors(std::chrono::seconds keep) : keep_(keep) {}

  // Notes how the run of a gang ends.
  void Remember(const GangRef& ref, RunEnd end);
  // The gang has a place again: the end of its last run is said no more.
  void OnBound(const GangRef& ref);
  // Keeps the devices of a run that is over, which are free in `cluster`, for the next pods, and
  // lets the gang go before others of its priority.
  void Keep(const GangRef& ref, const Holdings& freed, MonotonicTime now, ClusterState& cluster);
  // Keeps nothing for the gang any more, which goes before nobody. Ignores other gangs.
  void GiveBack(const GangRef& ref, ClusterState& cluster);
  // The same for a gang that exists no more; its last end is forgotten, too.
  void Forget(const GangRef& ref, ClusterState& cluster);
  // Gives back the devices that were kept for long enough.
  void EndDue(MonotonicTime now, ClusterState& cluster);

  // Returns nullptr for a gang of which no run has ended.
  const LastEnd* FindEnd(const GangRef& ref) const;
  // Returns how long the gang waits after the end of its last run.
  std::chrono::seconds PauseOf(const GangRef& ref) const;
  // Returns whether the gang goes before others of its priority.
  bool Resumes(const GangRef& ref) const { return kept_.contains(ref); }
  // Returns whether devices are kept for the gang.
  bool Keeps(const GangRef& ref) const;
  // Returns the fleet as the gang sees it: the devices that are kept for the gang are free.
  ClusterState ViewOf(const ClusterState& cluster, const GangRef& ref) const;
  std::chrono::seconds keep() const { return keep_; }

  // Returns whether devices were given back since the last call.
  bool DrainCapacityFreed() { return std::exchange(capacity_freed_, false); }
  // The time at which EndDue has something to do.
  std::optional<MonotonicTime> wake() const;

 private:
  struct Kept {
    std::vector<std::string> held;  // the claim uids of the holdings in the ClusterState
    MonotonicTime until;
  };
  void Release(const GangRef& ref, Kept& kept, ClusterState& cluster);

  const std::chrono::seconds keep_;
  absl::flat_hash_map<GangRef, LastEnd> ends_;
  absl::flat_hash_map<GangRef, Kept> kept_;
  std::set<std::pair<MonotonicTime, GangRef>> due_;  // gangs for which devices are kept
  bool capacity_freed_ = false;
};

}  // namespace tahoma::controller

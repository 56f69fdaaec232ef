// The gangs that wait: which of them is planned next, and why the others are not placed.
//
//   SchedulingQueue queue(plan);                                 // plan: a Planner's Plan
//   queue.Put(ref, membership.Assess(ref, facts, busy));         // it waits, ready or not
//   for (const Planned& planned : queue.Plan(cluster, room, now)) {
//     if (planned.placement) Begin(*planned.gang, *planned.placement);   // it waits no more
//   }
//   queue.See(cluster);                                          // which holds the placements now
//   if (const WaitingGang* waiting = queue.Find(ref)) Say(waiting->message);   // why it waits
//
// A gang that is ready is in one of three places: active (to be planned, in the order of service),
// backing off (it was undone a moment ago), or blocked (the planner found no place). A domain with
// more room than before wakes the blocked gangs that may take such room (wake_index.h), in the
// order of service and until the room is gone: other blocked gangs cost nothing. A gang that was
// woken in vain keeps its reason, because an explanation looks at every node and is written to an
// object; one reason a second is brought up to date. The order of service is that of QueueLines,
// where a gang also waits that its queue denies a start.
//
// Scope: everything between "all of its pods and claims exist" (gang_membership.h) and "it has a
// place". This class alone decides who is next, and a new order of service belongs here: queues and
// their shares, Capacity Blocks, backfill, preemption. The planner serves the gangs of one call in
// the order that it is given (planner.h).
// GangRuns, which carries a placement out, knows nothing of it, and this class knows nothing of
// records, API writes and their answers.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/facts/gang_membership.h"
#include "controller/core/facts/gang_status.h"
#include "controller/core/queue/promises.h"
#include "controller/core/queue/queue_lines.h"
#include "controller/core/queue/service_place.h"
#include "controller/core/queue/wake_index.h"
#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "controller/plan/decision.h"
#include "controller/timeline/timeline.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class Neighbours;
struct Narrowed;
class Successors;

// A gang that waits.
struct WaitingGang {
  std::shared_ptr<const GangSpec> spec;  // nullptr: not ready
  GangReason reason = GangReason::kNone;
  std::string message;
  bool finished = false;   // its pods have ended
  bool succeeded = false;  // … each with success
  // Blocked: the room that may help (plan/decision.h).
  RoomKinds rooms = kAnyRoom;
  std::size_t nodes = 0;  // WakeIndex::Kind::nodes
  QueueNeed need = {};
};

// The result of planning one gang.
struct Planned {
  std::shared_ptr<const GangSpec> gang;
  std::optional<Placement> placement;  // nullopt: it is blocked, or its queue denies a start
  bool news = false;                   // it is blocked for another reason than last time
};

class SchedulingQueue {
 public:
  // The most gangs that one call plans: a step answers new facts, however long the queue is.
  static constexpr std::size_t kPlansMost = 256;
  // The most blocked gangs that one call plans because a domain has more room: the first of the
  // gangs may take the room.
  static constexpr std::size_t kWokenMost = 16;
  static constexpr std::chrono::seconds kRefreshPause{1};

  // `neighbours`, `promises`, `successors` and `shares`, which may be nullptr, outlive it.
  explicit SchedulingQueue(PlanFunction plan, const Neighbours* neighbours = nullptr,
                           Promises* promises = nullptr, const Successors* successors = nullptr,
                           QueueShares* shares = nullptr)
      : plan_(std::move(plan)),
        neighbours_(neighbours),
        promises_(promises),
        successors_(successors),
        lines_(shares) {}

  // Marks a gang that has changed: the next DrainTouched returns it, to be assessed.
  void Touch(const GangRef& ref) { touched_.insert(ref); }
  void TouchAllWaiting();
  // Takes the gangs to be assessed: those that were touched and those whose backing off is over.
  std::set<GangRef> DrainTouched(MonotonicTime now);

  // Lets the gang wait as assessed. The planner's message stays while the gang stays ready.
  void Put(const GangRef& ref, const Readiness& ready);
  // Ends the gang's waiting: it has a run, or exists no longer. Unknown gangs are ignored.
  void Remove(const GangRef& ref);
  // Keeps the gang from being planned for a time from now on.
  void BackOff(const GangRef& ref, MonotonicTime now, std::chrono::seconds pause);
  bool IsBackingOff(const GangRef& ref) const { return backing_off_.contains(ref); }
  // Makes all blocked gangs active again.
  void OnCapacityFreed();
  // Makes the gangs active again that lack cpu, memory, ports and the like on some node.
  void OnRoomFreed();
  // Makes the gangs active again that Neighbours kept from some places.
  void OnNeighboursMoved();

  // Lets one blocked gang be planned and explained again, in turn, once in kRefreshPause and only
  // when the fleet has changed since the gang was explained.
  void RefreshOne(MonotonicTime now);

  // Plans at most `most` active gangs. Those with a placement wait no more, the others are blocked.
  // What is kept for a blocked gang (lending.h, promises.h) is kept from those behind it: gangs of
  // Capacity Blocks are planned in calls of their own, and so are those that other promises bind.
  // Behind a gang that is blocked and may be promised hardware nobody is planned in this call.
  // A gang whose place depends on where other pods are is planned in a call of its own, too, and
  // so is a gang that lost a member, in a fleet where its devices are free (successors.h).
  // A gang that may have fewer pods is planned alone, too: all pods if there is room, else the
  // first pods, as many as fit. The gang is blocked as the least number of pods is.
  // A gang that shares a claim with one placed before it in the same call is touched instead.
  std::vector<Planned> Plan(const ClusterState& cluster, std::size_t most, WallTime now);
  // Notes how much room the fleet has: what comes free afterwards wakes blocked gangs. Called when
  // the fleet holds the placements of a Plan; Plan itself calls it first.
  void See(const ClusterState& cluster);

  // Returns nullptr when the gang does not wait.
  const WaitingGang* Find(const GangRef& ref) const;
  // Returns the gang's promise; nullptr without one.
  std::shared_ptr<const Promise> PromiseTo(const GangRef& ref) const {
    return promises_ == nullptr ? nullptr : promises_->Find(ref);
  }
  // Returns whether others end, or have ended, to make room for the waiting gang.
  bool OthersEndFor(const GangRef& ref) const;
  std::size_t size() const { return waiting_.size(); }
  // Returns whether Plan() has something to do.
  bool has_active() const { return lines_.has_next() || !freed_.empty() || MayPromise(); }
  // The time at which DrainTouched has something without any news.
  std::optional<MonotonicTime> wake() const;
  const PlanFunction& planner() const { return plan_; }
  // Counts the gangs that the planner has been asked about.
  std::uint64_t plans() const { return plans_; }

 private:
  // Gangs to be planned, and what their neighbours make of them.
  struct Batch {
    Queue queue;
    ServicePlace first;
    std::vector<std::string> narrowed;  // for each gang of the queue: how, for people
    Explaining explaining = Explaining::kEach;
    std::shared_ptr<const GangSpec> fewer = {};  // the only gang, which may have fewer pods
    Promises::Bound binding = {};
  };
  // A domain with more room than before.
  struct Freed {
    bool changed = false;  // not only what is held, but nodes: reasons may change
    std::map<std::size_t, ServicePlace> last;  // the last gang of each line that was woken
    // Whether gangs may use the domain's nodes, by WakeIndex::Kind::nodes.
    absl::flat_hash_map<std::size_t, bool> may_use;
  };

  Batch DrainActive(std::size_t most, WallTime now);
  std::vector<Decision> Decide(const ClusterState& cluster, const Batch& batch, WallTime now) const;
  Decision DecideFirst(const ClusterState& cluster, Batch& batch, std::size_t count,
                       WallTime now) const;
  std::vector<Decision> DecideFewer(const ClusterState& cluster, Batch& batch, WallTime now) const;
  Narrowed NarrowOne(const std::shared_ptr<const GangSpec>& gang) const;
  Promises::Bound BindingOn(const ServicePlace& place, WallTime now) const;
  // Returns whether a gang without a promise may have a promise now.
  bool MayPromise() const;
  void TakeFreedPromises(const ClusterState& cluster);
  bool Settle(const Batch& batch, std::size_t i, Decision& decision, Planned& planned);
  void Reactivate(const Batch& batch, std::size_t first);
  void Activate(const ServicePlace& place);
  void Deactivate(const GangRef& ref);
  void Unblock(const GangRef& ref);
  bool CountFamilies(const ClusterState& cluster, DomainId id);
  void WakeForFreed(const ClusterState& cluster, WallTime now);
  bool WakeSome(const std::vector<WakeIndex::Kind>& kinds, Freed& freed, std::size_t& left,
                WallTime now);
  bool MayUse(const GangRef& ref, const ClusterState& cluster, DomainId domain) const;
  bool Block(const GangRef& ref, const Blocked& blocked);
  bool Deny(const GangRef& ref, const QueueDenial& why);
  bool DenyPlaced(const GangRef& ref, const Decision& decision, const ClusterState& cluster,
                  WallTime now, std::vector<Planned>& all);
  void TakeDenied(std::vector<Planned>& all);

  const PlanFunction plan_;
  const Neighbours* const neighbours_;
  Promises* const promises_;
  const Successors* const successors_;
  std::set<GangRef> touched_;
  absl::flat_hash_map<GangRef, WaitingGang> waiting_;
  QueueLines lines_;  // the active gangs
  WakeIndex blocked_;
  std::set<GangRef> lacking_room_;     // those of blocked_ that Blocked::lacks_room is set for
  std::set<GangRef> narrowed_;         // blocked, and narrowed by Neighbours
  std::set<ServicePlace> unpromised_;  // blocked when there were promises enough
  std::size_t together_ = kPlansMost;  // how many gangs the next call plans at most
  ClusterState seen_;                  // the fleet as See saw it last
  absl::flat_hash_map<std::shared_ptr<const NodeFamily>, std::size_t> families_;  // its nodes
  std::map<DomainId, Freed> freed_;
  struct Refresh {
    std::size_t left = 0;  // gangs whose reasons may be old
    std::optional<ServicePlace> last;
    MonotonicTime at{};
  };
  Refresh refresh_;
  std::set<GangRef> woken_;  // active gangs whose reason stays if they are blocked again
  absl::flat_hash_map<GangRef, MonotonicTime> backing_off_;
  std::set<std::pair<MonotonicTime, GangRef>> backoff_ends_;
  std::uint64_t plans_ = 0;
};

}  // namespace tahoma::controller

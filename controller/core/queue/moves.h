// Moves gangs so that a wanted place comes free, as Defragmentations ask.
//
//   Moves moves(runs, promises, plan);
//   moves.OnObject(fact);                               // a watch saw the object
//   moves.Step(from, now);                              // one plan, or the next step of a move
//   for (const auto& [object, news] : moves.DrainShown()) Write(object, news);
//   moves.OnShown(name, *status);                       // a write was answered
//
// A dry run is planned and shown. Otherwise one object at a time is carried out, the oldest first:
// the wanted place and the place of each move are kept from everybody else (KeepPlace of
// promises.h), then the gangs move one by one, at most so many in an hour. A move is written to the
// status before the run ends, and is done when the gang is bound again. Until then the gang goes
// before others of its priority. The wanted place is kept for a while when the last move is done.
//
// A move that cannot begin any more (the gang stays by now, the place is held or broken) lets the
// rest be planned anew, at most kPlansMost times. A gang that is not bound again within kMoveMost
// fails the object, and gives back what is kept for others. An abort, or the end of the object,
// begins no more moves; the place of the move under way stays kept until the gang is bound.
//
// After a restart the status says what was planned, what is kept and which run was to end.
//
// Scope: which runs end when, and what is kept for whom. Who may move: movable_run.h. Which gangs
// move: move_plan.h.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/functional/function_ref.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/commit/gang_runs.h"
#include "controller/core/facts/defragmentation.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/queue/movable_run.h"
#include "controller/core/queue/move_plan.h"
#include "controller/core/queue/promises.h"
#include "controller/model/cluster.h"
#include "controller/timeline/timeline.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// The state that a step looks at.
struct MoveSources {
  const ClusterState& cluster;
  // All bound runs; entries may be nullptr.
  absl::FunctionRef<std::vector<std::shared_ptr<const MovableRun>>()> runs;
  // The gang's bound run; nullptr without one.
  absl::FunctionRef<std::shared_ptr<const MovableRun>(const GangRef&)> run_of;
  // The gang if it waits for hardware; nullptr if not.
  absl::FunctionRef<std::shared_ptr<const GangSpec>(const GangRef&)> waiting;
};

class Moves {
 public:
  // How long a gang may take from the end of its run to the next bind, beside its pods' grace.
  static constexpr std::chrono::minutes kMoveMost{15};
  // How often the moves of an object are planned, and the pause between.
  static constexpr int kPlansMost = 4;
  static constexpr std::chrono::seconds kPlanPause{10};

  // `runs` and `promises` must outlive it.
  Moves(GangRuns& runs, Promises& promises, PlanFunction plan)
      : runs_(runs), promises_(promises), plan_(std::move(plan)) {}

  void OnObject(const std::shared_ptr<const DefragmentationFact>& fact);
  void OnObjectGone(const std::string& name, const std::string& uid);
  // The status is written.
  void OnShown(const std::string& name, const DefragmentationStatus& status);
  // The gang is bound, or exists no more.
  void OnSettled(const GangRef& ref) { first_.erase(ref); }

  void Step(const MoveSources& from, WallTime now);

  // Returns whether the gang moves, or was ended for a move and is not bound again: the gang goes
  // before others of its priority.
  bool GoesFirst(const GangRef& ref) const { return first_.contains(ref); }
  using Status = std::shared_ptr<const DefragmentationStatus>;
  // Takes the statuses that have changed.
  std::vector<std::pair<std::string, Status>> DrainShown();
  // The time at which Step has something to do without any news.
  std::optional<WallTime> wake() const { return wake_; }

 private:
  struct Entry {
    std::shared_ptr<const DefragmentationFact> fact;
    DefragmentationStatus status = {};
    bool shown = false;  // the API shows the status
    bool kept = false;   // what the status keeps is kept
    bool gone = false;   // the object is
    int plans = 0;
    std::optional<WallTime> plan_at = {};  // not planned before
  };
  using Entries = std::map<std::string, Entry>;
  struct Turn;

  void Change(Entry& entry);
  void WakeAt(WallTime when) { wake_ = std::min(wake_.value_or(when), when); }
  void RestoreKept(Entry& entry, const Turn& turn);
  void EndKeeping(Entry& entry, WallTime now);
  Entries::iterator Oldest();
  void Advance(Entry& entry, Turn& turn);
  void PlanDry(Entry& entry, Turn& turn);
  void PlanMovesOf(Entry& entry, Turn& turn, const std::string& because);
  absl::StatusOr<MovePlan> PlanOf(const Entry& entry, const Turn& turn) const;
  std::shared_ptr<const GangSpec> WantedOf(const Entry& entry, const Turn& turn) const;
  void TakePlan(Entry& entry, const MovePlan& plan, const Turn& turn);
  void Stop(Entry& entry, WallTime now);
  void Follow(Entry& entry, GangMove& move, const Turn& turn);
  void FollowNext(Entry& entry, GangMove& move, const GangRun& run, const Turn& turn);
  void Begin(Entry& entry, GangMove& move, Turn& turn);
  void EndMove(Entry& entry, GangMove& move, MoveState state, WallTime now);
  void Complete(Entry& entry, const Turn& turn);
  void Finish(Entry& entry, DefragmentationPhase phase, std::string message, WallTime now);
  std::optional<WallTime> NextStart(const Entry& entry, WallTime now) const;

  GangRuns& runs_;
  Promises& promises_;
  const PlanFunction plan_;
  Entries entries_;
  std::set<std::string> open_;      // not over
  std::set<std::string> changed_;   // DrainShown has their statuses
  std::set<std::string> keeping_;   // over, and the place is kept for a while
  std::multiset<WallTime> starts_;  // of moves in the last hour
  std::set<GangRef> first_;
  std::optional<WallTime> wake_;
};

}  // namespace tahoma::controller

// Checks that what waiting gangs are promised is kept, and that no gang ends for nothing.
//
// The checks read the controller's snapshot after each step:
//
//   - A gang with a promised start begins by the start and a grain, unless something disturbs the
//     start: hardware fails, a run goes on beyond the run's end, a run is undone or ended for
//     others, a gang comes and is served before, the queue holds no more, or the controller is
//     away.
//   - A gang that a promise binds gets no device of the promise.
//   - A gang that others end for gets a place afterwards, or waits for hardware no more.
//
// Worlds with Capacity Blocks are left out: their clock is set, and their hosts are kept.
//
// Thread safety: one thread.

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/journal/gang_decision.h"
#include "controller/core/journal/record.h"
#include "controller/core/snapshot.h"
#include "tests/sim/world.h"

namespace tahoma::simulation {

class PromiseChecks {
 public:
  explicit PromiseChecks(World& world) : world_(world) {}

  // A core begins, and knows no promise.
  void OnBegin();
  // The core has taken a step; the decisions of the step were shown before.
  void OnStep(const controller::Snapshot& snapshot);
  // A gang gets a place in the step that the snapshot ends.
  void OnPlaced(const controller::GangDecision& decision, const controller::Snapshot& snapshot);
  void OnUndoing(const controller::GangUndoing& undoing);
  void AtRest(const controller::Snapshot& snapshot) const;

 private:
  using Gangs =
      controller::PersistentMap<controller::GangRef, std::shared_ptr<const controller::GangView>>;
  using PromisePtr = std::shared_ptr<const controller::Promise>;

  // The core after its last step.
  struct Seen {
    WallTime when;
    controller::ClusterView fleet;
    Gangs gangs;
    std::vector<PromisePtr> promises;
  };
  // The latest start that a gang was told of and that nothing has disturbed.
  struct Bound {
    WallTime start;
    controller::ServicePlace place;
  };

  bool IsLeftOut() const { return world_.swarm.purchases > 0; }
  // Returns whether something has happened since the last step that may delay any start.
  bool IsDisturbed(const controller::Snapshot& snapshot, WallTime now) const;
  bool HasLostHardware(const controller::Snapshot& snapshot) const;
  void ForgetPreemptors(const controller::Snapshot& snapshot);
  void ForgetBehind(const controller::Snapshot& snapshot);
  void Print(const controller::Snapshot& snapshot, bool disturbed) const;
  void CheckStart(const controller::Snapshot& snapshot, const controller::GangRef& ref,
                  const Bound& bound, WallTime now, std::set<controller::GangRef>& over);
  std::optional<controller::GangRef> RefOf(const std::string& holder) const;
  // Returns whether the promise to the holder binds the gang of the decision.
  bool Binds(const PromisePtr& promise, const controller::GangDecision& decision) const;
  const controller::GangView* ViewOf(const Gangs& gangs, const controller::GangRef& ref) const;

  World& world_;
  std::optional<Seen> seen_;
  WallTime disturbed_{};  // the last time
  std::map<controller::GangRef, Bound> bounds_;
  std::set<controller::GangRef> begun_;  // gangs that have had a place
  // Gangs that others have ended for, and that have had no place since; with the first's message.
  std::map<std::string, std::string> preemptors_;
  std::vector<controller::GangDecision> decided_;  // in the step under way
  bool undone_ = false;                            // in the step under way
};

}  // namespace tahoma::simulation

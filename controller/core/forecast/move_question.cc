#include "controller/core/forecast/move_question.h"

#include <memory>
#include <vector>

namespace tahoma::controller {

absl::StatusOr<MovePlan> AskMoves(const Snapshot& snapshot, const MoveWish& wish, WallTime now,
                                  const PlanFunction& plan) {
  std::vector<std::shared_ptr<const MovableRun>> runs;
  snapshot.gangs.ForEach([&](const GangRef&, const std::shared_ptr<const GangView>& view) {
    if (view->movable != nullptr) runs.push_back(view->movable);
  });
  ClusterState fleet = *snapshot.cluster;
  HoldPromises(snapshot.promises, fleet);
  return PlanMovesIn(fleet, runs, wish, now, plan);
}

absl::StatusOr<MovePlan> MoveQuestion::Ask(const Snapshot& snapshot, const MoveWish& wish,
                                           WallTime now) {
  return AskMoves(
      snapshot, wish, now,
      [this](const ClusterState& fleet, const Queue& queue, WallTime when, Explaining explaining) {
        return planner_.Plan(fleet, queue, when, explaining);
      });
}

}  // namespace tahoma::controller

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

}  // namespace tahoma::controller

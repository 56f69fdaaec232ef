// Decides which gang goes where.
//
//   Planner planner;
//   std::vector<Decision> decisions = planner.Plan(*view, queue, now);
//
// Plan is a function of its arguments: a Planner keeps compiled requests and an index of the fleet
// between calls, for speed only. Placements of one call overlap neither each other nor the view's
// holdings.
//
// Plan serves gangs in the order of the queue; the queue's owner decides the order. A gang that
// cannot be placed does not stop the gangs behind it, and its decision says why. A gang goes where
// its pods' preferences are met, if there is such a place. Among places Plan
// takes the shape with the fastest predicted all-reduce (score.h), then the order of
// docs/reference/torus.md#order-of-places.
//
// Scope: places. A Planner does not decide who is next, and does not write, wait or read a clock.
//
// Thread safety: one thread at a time.

#pragma once

#include <memory>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "controller/plan/decision.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class Planner {
 public:
  Planner();
  ~Planner();
  Planner(Planner&&) noexcept;
  Planner& operator=(Planner&&) noexcept;

  // Returns one decision for each gang, in the order of the queue; with Explaining::kNone without
  // the reason why a gang is not placed. Every gang must be complete: as many MemberSpecs as
  // members. A gang that magnetic Capacity Blocks draw is placed in the first such block with room
  // for the gang, else outside of all blocks.
  std::vector<Decision> Plan(const ClusterState& view, const Queue& queue, WallTime now,
                             Explaining explaining = Explaining::kEach);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace tahoma::controller

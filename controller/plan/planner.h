// Decides which gang goes where.
//
//   Planner planner;
//   std::vector<Decision> decisions = planner.Plan(*view, queue, now);
//
// Plan is a function of its arguments: a Planner keeps compiled requests and an index of the fleet
// between calls, which make it fast and change no answer. Placements of one call do not overlap
// each other or what the view says is held.
//
// Gangs are served in the order of the queue, which its owner decides. A gang that cannot be placed
// does not stop those behind it; it is answered with the reason. Among places Plan takes the shape
// whose predicted all-reduce is fastest (score.h), then the order of
// docs/reference/torus.md#order-of-places.
//
// Scope: places. Nothing here decides who is next, writes, waits or tells the time.
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

  // A gang that magnetic Capacity Blocks draw is placed in the first of them in which it fits, else
  // where it would be without them.
  // Returns one decision for each gang of the queue, in its order. Every gang must be complete: as
  // many MemberSpecs as members.
  std::vector<Decision> Plan(const ClusterState& view, const Queue& queue, WallTime now);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace tahoma::controller

// Which gangs would end for a gang that does not exist, as Preemption would choose them.
//
// The rules are those of core/queue/preemption.h: priority inside a queue, guarantees between
// queues, minRuntime, whole gangs, the fewest, at most kRunsMost of the lowest priorities.
//
// Scope: the gangs of a snapshot. Nobody is ended.
//
// Thread safety: a pure function, but for what `plan` remembers.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/facts/gang_membership.h"
#include "controller/core/forecast/asked_queues.h"
#include "controller/core/snapshot.h"
#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "controller/plan/decision.h"
#include "controller/timeline/timeline.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// A gang that would end for another.
struct EndingGang {
  GangRef ref;
  std::string queue;
  std::int32_t priority = 0;
  std::int64_t work = 0;  // lost: chip-seconds
  bool ending = false;    // ends already
};

struct ForeseenVictims {
  std::vector<EndingGang> gangs;       // the lowest priority first
  std::optional<Placement> placement;  // without these gangs
  std::string why;                     // a sentence, where there is no placement
};

// `gang` finds no place in `fleet`, in which the promises that bind the gang are held.
ForeseenVictims ForeseeVictims(const Snapshot& snapshot, const AskedQueues& queues,
                               const std::shared_ptr<const GangSpec>& gang,
                               const ClusterState& fleet, WallTime now, const PlanFunction& plan);

}  // namespace tahoma::controller

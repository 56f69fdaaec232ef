// The next pod for a bound gang with minMembers and fewer pods than members.
//
//   if (auto next = FindGrowth(*run, *gang, sources, now)) queue.Put(ref, *next);
//   …                                     // the planner has found a place for next->spec
//   if (auto added = AddedOf(*run, *gang, placement)) runs.Add(*added);
//
// The pods that wait are taken in the order of ranks, one after the other. A pod gets the lowest
// rank below `members` that is free: never given, or given up by a pod that has ended and whose
// claims are released. A pod whose claim is allocated waits: claims that several pods share would
// make the end of a pod the matter of others.
//
// Scope: which pod is next, and its rank. scheduling_queue.h decides when the pod gets a place.
//
// Thread safety: any thread, while nobody changes the sources.

#pragma once

#include <functional>
#include <optional>

#include "controller/core/commit/gang_run.h"
#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/model/cluster.h"
#include "controller/plan/decision.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

struct GrowthSources {
  const Facts& facts;
  const GangMembership& membership;
  const ClusterState& cluster;
  GangMembership::ClaimBusy busy;
  std::function<bool(const PodFact&)> has_place;  // in any run
};

// Returns the gang's next pod as a gang of that pod alone, or why the pods that wait must wait;
// nullopt when none waits, or the gang does not grow.
std::optional<Readiness> FindGrowth(const GangRun& run, const GangFact& gang,
                                    const GrowthSources& from, WallTime now);

// Returns the record that gives the pod of the placement a place; nullopt when the run has no free
// place any more.
std::optional<MemberAdded> AddedOf(const GangRun& run, const GangFact& gang,
                                   const Placement& placement);

}  // namespace tahoma::controller

// Pods that take the places of lost members in a gang that goes on (failurePolicy Replace).
//
//   Replacement next = FindReplacement(*run, sources, now);
//   for (const MemberReplaced& member : next.members) runs.Replace(member);
//   if (!next.impossible.empty()) runs.End(run->id(), EndCause::kMemberLost, next.impossible);
//
// A next pod is a live pod of the gang without a place. All lost members are replaced together: the
// order of ranks among all pods says who takes which place. The planner is asked whether the next
// pod may use the very chips of the lost pod, as they are now. If not, the planner is asked for as
// many free chips anywhere. In a gang with a shape the pod's slice keeps its shape: the pod gets
// the rest of another box around the chips of the slice's other pods, and a slice whose pods all
// move goes to any free box.
//
// Scope: which pod takes which place. gang_runs.h carries the replacement out.
//
// Thread safety: any thread, while nobody changes the sources.

#pragma once

#include <string>
#include <vector>

#include "controller/core/commit/gang_run.h"
#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/queue/scheduling_queue.h"
#include "controller/model/cluster.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

struct Replacement {
  std::vector<MemberReplaced> members;  // empty: pods, claims or the ends of lost pods are missing
  std::string impossible;               // why the next pods cannot take the places; else empty
};

struct ReplacementSources {
  const Facts& facts;
  const GangMembership& membership;
  const ClusterState& cluster;
  const PlanFunction& plan;
  GangMembership::ClaimBusy busy;
};

// The run is bound and has lost a member.
Replacement FindReplacement(const GangRun& run, const ReplacementSources& from, WallTime now);

}  // namespace tahoma::controller

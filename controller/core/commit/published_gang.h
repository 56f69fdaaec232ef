// A gang as the Kubernetes API shows it, for a controller whose journal does not know the gang: the
// disk was lost, a stand-by with an empty disk takes over, or the API was restored from a backup.
//
// Scope: reading; gang_runs.h decides about the gang. Pure functions.
//
// Thread safety: any thread, while nobody changes the facts.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "controller/core/commit/gang_run.h"
#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/journal/gang_decision.h"

namespace tahoma::controller {

struct PublishedGang {
  std::shared_ptr<const GangDecision> decision;  // as far as the API shows it
  bool any_bound = false;                        // some pod is bound by us
  bool all_bound = false;                        // each pod is
  bool all_held = false;                  // every claim is allocated and reserved for its pod
  bool all_placed = false;                // the node of every pod is known
  std::optional<WallTime> bound_at = {};  // of the last pod, as far as pods say
};

struct ReadPublishedOptions {
  // Set when the journal is beside the API. Then no commit is unknown, and claims are made with
  // their finalizer: a finalizer alone is no trace of a commit.
  bool journal_beside_api = false;
};

// Returns the gang as it is published. `pods` are the gang's, in the order of their names, not
// empty. A claim `in_run` already is another run's: the pods for which the claim is reserved share
// the claim (allocated_before). nullopt when nothing is bound and no claim is the gang's own.
std::optional<PublishedGang> ReadPublished(const GangRef& ref,
                                           const std::vector<std::shared_ptr<const PodFact>>& pods,
                                           const Facts& facts,
                                           const std::function<bool(const ClaimKey&)>& in_run,
                                           const ReadPublishedOptions& options);

// Returns whether the API shows that it was restored from an older backup: a claim that the bound
// run has released is in use by one of its pods, or such a pod is unbound.
bool CameBack(const GangRun& run, const Facts& facts);

}  // namespace tahoma::controller

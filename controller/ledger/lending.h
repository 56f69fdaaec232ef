// Ends loans of Capacity Blocks' hardware: when their time is over, and when gangs of the block
// need it.
//
//   Lending lending(runs, plan);
//   lending.EndDue(cluster, now);              // after the blocks' step
//   lending.OnBlocked(*gang, cluster, now);    // the planner found no place for it in its block
//   lending.OnSettled(ref, cluster);           // it has one, or waits for something else
//
// While a gang of a block waits for loans that end, nothing more of what it needs is lent: its
// block's hardware is wanted (BlockUse::wanted). A gang that would not fit even without any loan
// ends none.
//
// Scope: which runs end. Until when single domains are lent: borrowers.h; which loans are chosen:
// plan/loan_choice.h.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/ledger/borrowers.h"
#include "controller/ledger/gang_membership.h"
#include "controller/ledger/gang_runs.h"
#include "controller/ledger/scheduling_queue.h"
#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class Lending {
 public:
  // `runs` must outlive it.
  Lending(GangRuns& runs, PlanFunction plan) : runs_(runs), plan_(std::move(plan)) {}

  // Ends the loans whose time is over.
  void EndDue(const ClusterState& cluster, WallTime now);
  // Ends as few loans as let the gang be placed on its block's hardware, if that helps.
  void OnBlocked(const GangSpec& gang, ClusterState& cluster, WallTime now);
  // The gang waits for loans no more.
  void OnSettled(const GangRef& ref, ClusterState& cluster);
  // Returns when EndDue has something to do without any news.
  std::optional<WallTime> wake() const { return borrowers_.wake(); }
  // Returns whether hardware may be lent again since the last call.
  bool TakeCapacityFreed() { return std::exchange(capacity_freed_, false); }

 private:
  // A gang that borrows hardware of the block, as a whole.
  struct Borrower {
    const GangRun* run = nullptr;
    std::int64_t chips = 0;
  };

  std::vector<Borrower> BorrowersIn(const std::vector<DomainId>& domains,
                                    const ClusterState& cluster) const;
  bool FitsWithout(const GangSpec& gang, const std::vector<const GangRun*>& ended,
                   const ClusterState& cluster, WallTime now) const;

  GangRuns& runs_;
  const PlanFunction plan_;
  Borrowers borrowers_;
  // The gangs that wait for loans to end, by the block's reservation, and the domains that are kept
  // for them.
  struct Wanting {
    std::set<GangRef> gangs;
    std::vector<DomainId> domains;
  };
  std::map<std::string, Wanting> wanting_;
  absl::flat_hash_map<GangRef, std::string> reservation_of_;
  bool capacity_freed_ = false;
};

}  // namespace tahoma::controller

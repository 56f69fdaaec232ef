// Ends what uses a Capacity Block's hardware without being a gang of that block: when its time is
// over, and when gangs of the block need the hardware.
//
//   Lending lending(runs, plan);
//   lending.EndDue(cluster, now);                  // after the blocks' step
//   lending.MakeWay(heir, gangs, cluster, now);    // the block begins, and these gangs with it
//   lending.OnBlocked(*gang, cluster, now);        // the planner found no place in its block
//   lending.OnSettled(ref, cluster);               // it has one, or waits for something else
//
// These are the gangs that borrow it, and those of its owner that go on there: their own block has
// ended, and this one is the owner's next. Those that borrow are ended first.
//
// While a gang of a block waits for loans that end, nothing more of what it needs is lent: its
// block's hardware is wanted (BlockUse::wanted). A gang that would not fit even if all of them
// ended ends none.
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

#include "controller/core/blocks/capacity_blocks.h"
#include "controller/core/commit/gang_runs.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/queue/borrowers.h"
#include "controller/core/queue/scheduling_queue.h"
#include "controller/model/cluster.h"
#include "controller/model/gang.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class Lending {
 public:
  // `runs` and `promises`, which may be nullptr, must outlive it.
  Lending(GangRuns& runs, PlanFunction plan, const Promises* promises = nullptr)
      : runs_(runs), plan_(std::move(plan)), promises_(promises) {}

  // Ends the loans whose time is over.
  void EndDue(const ClusterState& cluster, WallTime now);
  // The most gangs that one call of MakeWay plans together. Those beyond have their turn when the
  // block has begun, one by one.
  static constexpr std::size_t kTogetherMost = 16;

  // Ends as few gangs that would go on into the block as lets `gangs`, in the order of service, be
  // placed when it begins; a gang that would have no place anyway is left out.
  void MakeWay(const Heir& heir, Queue gangs, const ClusterState& cluster, WallTime now);
  // Ends as few of those that are not the block's as let its gang be placed, if that helps.
  void OnBlocked(const GangSpec& gang, ClusterState& cluster, WallTime now);
  // The gang waits for loans no more.
  void OnSettled(const GangRef& ref, ClusterState& cluster);
  // Returns when EndDue has something to do without any news.
  std::optional<WallTime> wake() const { return borrowers_.wake(); }
  // Returns whether hardware may be lent again since the last call.
  bool DrainCapacityFreed() { return std::exchange(capacity_freed_, false); }

 private:
  // A gang on hardware of a block that is not its own, as a whole.
  struct Guest {
    const GangRun* run = nullptr;
    std::int64_t chips = 0;
    bool borrows = false;
  };
  struct Guests {
    std::vector<Guest> staying;
    std::vector<const GangRun*> ending;
  };

  Guests GuestsIn(const std::vector<DomainId>& domains, const std::string& reservation,
                  const ClusterState& cluster) const;
  std::vector<Decision> PlanWithout(const Queue& gangs, const std::vector<const GangRun*>& ended,
                                    const ClusterState& cluster, WallTime now) const;
  std::optional<std::vector<Guest>> Choose(const Queue& gangs, const std::vector<Guest>& among,
                                           const std::vector<const GangRun*>& ended,
                                           const ClusterState& cluster, WallTime now) const;

  GangRuns& runs_;
  const PlanFunction plan_;
  const Promises* const promises_;
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

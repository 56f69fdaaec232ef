// The gangs that borrow hardware of Capacity Blocks, and the borrowers that must be ended now.
//
// A preemptible gang borrows the hardware of its holdings (Holding::borrows). On each domain its
// loan ends as LoanEnd says (model/block_use.h): before a block begins there, at the reclaim of the
// lending block, or at once where nothing may be lent. A gang that has to leave one domain is ended
// as a whole.
//
// Scope: loans of single domains. Which loans end because a gang of the block needs the hardware:
// loan_choice.h.
//
// Thread safety: belongs to one thread.

#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/model/cluster.h"
#include "controller/model/ids.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

struct LoanOver {
  ClaimKey claim;
  std::string why;  // "us-0 is kept for a Capacity Block that begins 2026-…"
};

class Borrowers {
 public:
  void Update(const ClusterState& cluster);
  // Takes the loans that end by `now`, each once while its domain stays as it is.
  std::vector<LoanOver> DrainOver(WallTime now);
  // Returns when the next loan ends.
  std::optional<WallTime> wake() const;

 private:
  ClusterState seen_;
  std::set<std::pair<WallTime, DomainId>> ends_;  // the earliest of each domain
  std::vector<std::optional<WallTime>> end_of_;   // by domain: as in `ends_`
};

// Returns the holdings that borrow the domain, each once.
std::vector<std::shared_ptr<const Holding>> BorrowersOf(const ClusterState& cluster, DomainId id);

}  // namespace tahoma::controller

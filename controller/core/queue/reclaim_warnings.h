// Says which running gangs are told that they may be ended soon: a calendar lowers the guarantee of
// their queue, or of a queue above, and the queue will hold more than that.
//
// Only preemptible gangs are told, the calendar's `warning` before the change. A notice is
// withdrawn when no such change comes any more. A notice of a change that has come stays while the
// queue holds more than the guarantee.
//
// All follows from the objects, the runs and the time. A restart finds by the pods' annotations
// what was told.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/commit/gang_run.h"
#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/journal/record.h"
#include "controller/core/journal/usage_record.h"
#include "controller/core/queue/calendar_keeper.h"
#include "controller/share/queue_shares.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

struct ReclaimWarning {
  RunId run = 0;
  std::optional<WallTime> reclaim;  // nullopt: the notice is withdrawn
  std::string message;              // for an event; empty: people know already
};

class ReclaimWarnings {
 public:
  // A run that holds chips of its queue, which exists in the tree.
  struct Holder {
    RunId run = 0;
    std::string queue;
    Eighths amount;
    std::shared_ptr<const GangDecision> decision;
    std::size_t released = 0;  // claims
  };
  using Holders = absl::flat_hash_map<GangRef, Holder>;

  // `facts` must outlive it.
  explicit ReclaimWarnings(const Facts& facts) : facts_(facts) {}

  // Finds who is to be told, or no more. The tree of `shares` has the numbers in force.
  void Find(const Holders& holders, const QueueShares& shares, const CalendarKeeper& calendars,
            WallTime now);
  std::vector<ReclaimWarning> Drain() { return std::exchange(warnings_, {}); }
  // Returns the end that the run was told of; before the first Find what its pods show.
  std::optional<WallTime> EndToldTo(const GangRun& run) const;
  // Returns whether a change of the holders matters.
  bool open() const { return open_; }
  // Returns when Find has something to do without any news.
  std::optional<WallTime> wake() const { return next_; }

 private:
  struct Told {
    RunId run = 0;
    WallTime reclaim;
    std::shared_ptr<const GangDecision> decision;  // whose pods were told
  };
  // The reason for a notice, by the gang.
  using Wanted = std::map<GangRef, std::pair<WallTime, std::string>>;

  void AddWanted(const Holders& holders, const QueueTree& tree,
                 const QueueCalendars::Change& change, Wanted& wanted) const;
  std::optional<WallTime> ShownBy(const GangDecision& decision) const;
  void Compare(const GangRef& ref, const Holder& holder, const Wanted& wanted,
               const QueueShares& shares, WallTime now);

  const Facts& facts_;
  absl::flat_hash_map<GangRef, Told> told_;
  std::vector<ReclaimWarning> warnings_;
  bool first_ = true;  // told_ is not known yet
  bool open_ = false;
  std::optional<WallTime> next_;
};

}  // namespace tahoma::controller

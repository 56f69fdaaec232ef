// Follows the objects of the kind Queue and the gangs that run and wait, and tells the shares.
//
//   QueueKeeper keeper(facts, runs, cluster);
//   keeper.Restore(sequence, record);                     // each record of the journal, in order
//   keeper.OnQueues();                                    // objects of facts.queues have changed
//   keeper.OnQueueCalendars();                            // … of facts.queue_calendars
//   keeper.Touch({{"team-a", "train"}, false});           // whenever the run of a gang has news
//   if (keeper.Follow(now)) TouchAllWaiting();            // before gangs are assessed and planned
//   ready = keeper.Admit(ref, std::move(ready));          // the gang's queue, or why not
//   keeper.Waits(ref, ready);                             // until WaitsNoMore(ref)
//   keeper.Update(now, journal);                          // before the journal is written
//
// A gang holds chips of its queue from the decision until its claims are given back; a gang in a
// Capacity Block holds none. The chips are those of the decisions, so a restart finds them in the
// runs. The recent use is journalled in the batch that ends some of that, and every kRecordEvery:
// with the time of each decision, a crash at any moment counts no time twice and loses none.
//
// Queues have the numbers that calendars put in force (calendar_keeper.h), or their own.
//
// Without any object of the kind Queue nothing is counted, and gangs keep the queues that they
// name.
//
// Scope: queues of gangs. What queues may hold and whose turn it is: controller/share.
//
// Thread safety: belongs to one thread; the views are immutable.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/commit/gang_runs.h"
#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/journal/journal_buffer.h"
#include "controller/core/journal/usage_record.h"
#include "controller/core/queue/calendar_keeper.h"
#include "controller/core/queue/reclaim_warnings.h"
#include "controller/model/cluster.h"
#include "controller/model/persistent.h"
#include "controller/share/queue_shares.h"
#include "controller/share/queue_view.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class QueueKeeper {
 public:
  static constexpr std::chrono::minutes kRecordEvery{10};
  // How often use, parts and places are shown at most, and at least.
  static constexpr std::chrono::seconds kShowEvery{1};
  static constexpr std::chrono::seconds kShowTimeEvery{60};

  using Views = PersistentMap<std::string, std::shared_ptr<const QueueView>>;

  // All outlive it.
  QueueKeeper(const Facts& facts, const GangRuns& runs, const ClusterState& cluster)
      : facts_(facts), runs_(runs), cluster_(cluster), calendars_(facts), warnings_(facts) {}

  // Takes an entry of the journal, before the first Follow.
  void Restore(Sequence sequence, QueueUseRecord record);
  void OnQueues() { changed_ = true; }
  void OnQueueCalendars() { calendars_.OnCalendars(); }
  void Touch(const GangRef& ref) { touched_.insert(ref); }
  // Takes what changed, by objects or by the time of day. Returns whether queues did: every gang
  // that waits is to be admitted anew.
  bool Follow(WallTime now);

  // Gives the gang its queue, and the queue's longest run time where the gang has none; or says why
  // it waits. Gangs that name a Capacity Block stay as they are.
  Readiness Admit(const GangRef& ref, Readiness ready);
  // Counts a gang, as admitted, that waits in its queue.
  void Waits(const GangRef& ref, const Readiness& ready);
  void WaitsNoMore(const GangRef& ref);
  // Takes gangs to be admitted anew: a full queue has room.
  std::set<GangRef> DrainLetIn() { return std::exchange(waiting_.let_in, {}); }
  // Takes the runs to be ended, and why: their queues are drained.
  std::vector<std::pair<RunId, std::string>> DrainToEnd() { return std::exchange(to_end_, {}); }

  // Journals use that is due, and brings views up to date.
  void Update(WallTime now, JournalBuffer& journal);
  // Returns when Update has something to do without any news.
  std::optional<WallTime> wake() const;

  QueueShares& shares() { return shares_; }
  const QueueShares& shares() const { return shares_; }
  const Views& views() const { return views_; }
  CalendarKeeper& calendars() { return calendars_; }
  ReclaimWarnings& warnings() { return warnings_; }

 private:
  using Held = ReclaimWarnings::Holder;
  // A gang for which a queue has no room.
  struct Beyond {
    std::string queue;
    std::pair<WallTime, GangRef> place;
  };

  const QueueTree& tree() const { return shares_.tree(); }
  void Rebuild(WallTime now, const std::string& other = "");
  void SetComing(const std::set<std::string>& others, WallTime now);
  void FindDrained();
  void FindWarnings(WallTime now);
  void WarnBy(std::optional<WallTime> when);
  void TakeRun(const GangRef& ref, WallTime now);
  void Begin(const GangRef& ref, Held held, WallTime now);
  void GiveBack(const Held& held, WallTime now);
  std::string QueueOf(const GangRun& run) const;
  Eighths AmountOf(const GangRun& run) const;
  QueueAsk AskOf(const GangRef& ref, const GangSpec& gang) const;
  void Leave(const GangRef& ref);
  void CountWaiting(const std::string& queue, int sign);
  void ForgetBeyond(const GangRef& ref);
  void MarkPath(const std::string& queue, bool record);
  void Record(const std::string& queue, WallTime now, JournalBuffer& journal);
  void RecordAll(JournalBuffer& journal, WallTime now);
  std::string BlameFor(const QueueTree::Node& node) const;
  void ShowCounts(const std::string& queue);
  void ShowOrder(WallTime now);
  void ShowSiblings(const std::vector<std::size_t>& siblings, WallTime now);
  void PutView(QueueView view);

  const Facts& facts_;
  const GangRuns& runs_;
  const ClusterState& cluster_;
  CalendarKeeper calendars_;
  ReclaimWarnings warnings_;
  std::optional<WallTime> warn_;  // when warnings are to be found
  QueueShares shares_;
  bool changed_ = false;
  std::set<GangRef> touched_;
  std::set<GangRef> with_run_;
  ReclaimWarnings::Holders held_;
  std::vector<std::pair<RunId, std::string>> to_end_;

  struct Waiting {
    absl::flat_hash_map<GangRef, std::string> queue_of;  // of gangs that count
    absl::flat_hash_map<std::string, std::int64_t> in;   // how many, in a queue and below
    absl::flat_hash_map<GangRef, Beyond> beyond;
    std::map<std::string, std::set<std::pair<WallTime, GangRef>>> beyond_of;  // by the full queue
    std::set<GangRef> let_in;
  };
  Waiting waiting_;

  struct Journalled {
    std::map<std::string, QueueUse> restored;  // of queues that are not in the tree yet
    std::map<std::string, Sequence> entries;
    std::set<std::string> due;
    WallTime all_at;  // when all were recorded
  };
  Journalled use_;

  std::set<std::string> to_show_;
  bool stale_ = false;  // something was shown without its order
  WallTime shown_;
  Views views_;
};

}  // namespace tahoma::controller

// Shows people the gangs: phases, conditions, reasons, events, the admin API's views.
//
// A gang's state is found once (its Standing) and shown everywhere: in its view, the status of the
// Gang, the conditions of its pods. gang_status.h has the words, status_outbox.h the times.
//
// Scope: showing. It reads facts, runs and queue, and changes none of them; no decision depends on
// it.
//
// Thread safety: belongs to one thread; the views are immutable.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/commit/gang_runs.h"
#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/facts/gang_status.h"
#include "controller/core/queue/scheduling_queue.h"
#include "controller/core/snapshot.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/status_outbox.h"
#include "controller/model/cluster.h"
#include "controller/model/persistent.h"

namespace tahoma::controller {

class StatusReporter {
 public:
  // All of these outlive the reporter.
  struct Sources {
    const Facts& facts;
    const GangMembership& membership;
    const ClusterState& cluster;
    const GangRuns& runs;
    const SchedulingQueue& queue;
  };
  // The pods of a bound run.
  struct Members {
    std::int32_t present = 0;  // exist and have not ended
    std::int32_t ready = 0;    // … and are ready, on a node that is
    std::int32_t finished = 0;
    std::int32_t succeeded = 0;
    std::vector<MemberTrouble> troubled;    // the first of those that are lost or not ready
    GangReason reason = GangReason::kNone;  // the worst trouble
  };
  using Views = PersistentMap<GangRef, std::shared_ptr<const GangView>>;

  // `writes` must outlive the reporter, too.
  StatusReporter(const Sources& sources, WriteBuffer& writes) : from_(sources), outbox_(writes) {}

  // Brings the gang's view, status and pod conditions up to date. The gang has a run or waits.
  void Show(const GangRef& ref, const Now& now);
  // Removes the view of a gang that has no run and waits no more.
  void Forget(const GangRef& ref);
  // Takes the Gang as a watch saw it.
  void SeeGang(const GangFact& gang, const Now& now) { outbox_.SeeGang(gang, now); }
  // Ends all writes to an object that exists no more.
  void ForgetGang(const GangKey& key) { outbox_.ForgetGang(key); }
  void ForgetPod(const PodKey& key) { outbox_.ForgetPod(key); }

  // Queue events.
  void TellRun(const RunNews& news, WallTime now);
  void TellPlaced(const GangDecision& decision, WallTime now);
  // A pod is about to take the place of a lost one.
  void TellReplaced(const GangRun& run, const MemberReplaced& member, WallTime now);
  // A pod is about to join a bound gang.
  void TellAdded(const GangRef& ref, const MemberAdded& member, WallTime now);
  void TellReclaim(const GangDecision& decision, const std::string& message, WallTime now);
  void TellMaintenance(const GangDecision& decision, const std::string& message, WallTime now);
  void TellBlocked(const GangRef& ref, const std::string& message, WallTime now);

  // Takes the answer to a write of Flush().
  void OnResult(const ApiResult& result, const Now& now) { outbox_.OnResult(result, now); }
  void Flush(const Now& now) { outbox_.Flush(now); }
  // The time at which Flush has something to do without any news.
  std::optional<MonotonicTime> wake(const Now& now) const { return outbox_.wake(now); }
  const Views& views() const { return views_; }

 private:
  struct Standing;

  Members MembersOf(const GangRun& run) const;
  void AddRun(const Standing& standing, GangStatus& status) const;
  Standing StandingOf(const GangRun& run) const;
  std::string QueueIn(const GangRef& ref, const GangRun* run, const WaitingGang* waiting) const;
  std::string SizeOf(const GangRun& run, const Members& members) const;
  GangStatus StatusOf(const GangRef& ref, const Standing& standing) const;
  bool EndedBound(const GangRef& ref) const;
  void AddTimes(const GangFact& gang, const Standing& standing, WallTime now,
                GangStatus& status) const;
  std::string PredictedAllReduce(const GangDecision& decision) const;
  void ShowPods(const GangRef& ref, const std::string& message, const Now& now);
  void TellPod(const PodKey& pod, EventNote note);
  void TellGang(const GangRef& ref, EventNote note);

  const Sources from_;
  StatusOutbox outbox_;
  Views views_;
};

}  // namespace tahoma::controller

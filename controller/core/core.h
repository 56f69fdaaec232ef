// The controller's decisions: takes facts; gives decisions, API writes and a new snapshot.
//
//   Core core(plan);                                          // plan: a Planner's Plan
//   TAHOMA_RETURN_IF_ERROR(journal.Load([&](Sequence sequence, std::string_view bytes) {
//     return core.Restore(sequence, bytes);
//   }));
//   for (;;) {
//     StepOutput out = core.Step(queue.PopAll(1024), now);
//     TAHOMA_RETURN_IF_ERROR(journal.Write(out.journal));   // first …
//     publish(out.writes);                                  // … and only then
//   }
//
// Every decision is in `journal`; no write of `writes` may be issued before it is durable. After a
// failed journal write the core must not be stepped again. A restart finds the journal and the API
// in any mixture of old and new: each gang is rolled forward or back until it is whole or absent.
// Gangs that the journal does not know (a lost disk) are taken over as they are published.
//
// It owns the parts and passes news between them; each can be used alone:
//
//   GangMembership   which pods make up which gang, and whether it is complete
//   Neighbours       the places that pods leave to pods that must be beside them, or apart
//   Successors       gangs whose run was ended, and hardware that is kept for next pods
//   SchedulingQueue  the gangs that wait: which is planned next, and why the others are not placed
//   GangRuns         the gangs that have a place: the commit protocol, its records and its writes
//   StatusReporter   what people are shown of both
//   CapacityBlocks   the Capacity Blocks: orders, the book, its records and what is published
//   ClaimMaker       claims of pods that ask for devices by the names of extended resources
//   WorkloadKeeper   claim templates and status of AWS's NeuronUltraServerWorkloads
//   VolumeNodes      what provisioners of volumes are told of the nodes of pods
//   QueueStatuses    what Queues show of themselves
//   QueueCalendarStatuses  which periods of QueueCalendars are in force
//   WindowStatuses   the status of MaintenanceWindows
//   BlockNotices     what pods in them are told while they run
//   BlockRequests    extensions, quotas, series and waitlist of them that people ask for by objects
//   Windows          maintenance windows: hardware kept free, gangs ended
//   Moves            moves gangs to make room, for Defragmentations
//   Lending          ends gangs that have borrowed hardware which a block needs
//   GangUsage        the chip time of gangs, by namespace and queue
//
// A placement goes from the queue to the runs as a GangDecision, and what became of it comes back
// as RunNews: the two know nothing else of each other.
//
// Scope: deterministic: same commands and times, same output. No I/O, no threads, no clock.
//
// Thread safety: belongs to one thread; the snapshots that it hands out are immutable.

#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/blocks/block_notices.h"
#include "controller/core/blocks/block_requests.h"
#include "controller/core/blocks/capacity_blocks.h"
#include "controller/core/command.h"
#include "controller/core/commit/gang_runs.h"
#include "controller/core/commit/gang_usage.h"
#include "controller/core/decision_log.h"
#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/journal/journal.h"
#include "controller/core/journal/journal_buffer.h"
#include "controller/core/queue/lending.h"
#include "controller/core/queue/moves.h"
#include "controller/core/queue/neighbours.h"
#include "controller/core/queue/preemption.h"
#include "controller/core/queue/queue_keeper.h"
#include "controller/core/queue/scheduling_queue.h"
#include "controller/core/queue/successors.h"
#include "controller/core/queue/windows.h"
#include "controller/core/snapshot.h"
#include "controller/core/status_reporter.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/claim_maker.h"
#include "controller/core/writes/defragmentation_statuses.h"
#include "controller/core/writes/gang_maker.h"
#include "controller/core/writes/queue_calendar_statuses.h"
#include "controller/core/writes/queue_statuses.h"
#include "controller/core/writes/volume_nodes.h"
#include "controller/core/writes/window_statuses.h"
#include "controller/core/writes/workload_keeper.h"
#include "controller/core/writes/write_buffer.h"
#include "controller/model/cluster.h"
#include "controller/model/persistent.h"
#include "controller/share/queue_view.h"

namespace tahoma::controller {

struct CoreOptions {
  // Set in standalone mode, where the journal is on the disk of the API server and in its process:
  // neither is lost without the other, and no write outlives the process that sent it. It must be
  // set where claims are made with their finalizer (apiserver::ControllerOptions::protect_claims);
  // otherwise every such gang is undone at a start.
  bool journal_beside_api = false;
  BookOptions blocks = {};
  BlockTime block_time = {};  // what the blocks live by
  // The number of this leadership, larger than those before it (kube::LeaderElection::term); 0
  // where nobody else can lead.
  std::int64_t term = 0;
  // How long the hardware of a gang that lost a member is kept for its next pods.
  std::chrono::seconds keep_for_successor{300};
};

struct StepOutput {
  JournalBatch journal;
  std::vector<ApiWrite> writes;
  std::vector<OrderAnswer> answers;  // given when the journal is durable
  // The time at which Step has something to do without any command; nullopt when only a command can
  // move it.
  std::optional<MonotonicTime> wake;
};

class Core {
 public:
  explicit Core(PlanFunction plan, CoreOptions options = {});
  // Not copyable: its parts refer to each other.
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Takes one entry of the journal, in order, before the first Step. kDataLoss for an entry that
  // cannot be read or that contradicts the ones before.
  absl::Status Restore(Sequence sequence, std::string_view bytes);

  StepOutput Step(const std::vector<Command>& commands, const Now& now);

  std::shared_ptr<const Snapshot> snapshot() const { return snapshot_; }

 private:
  using QueueViews = PersistentMap<std::string, std::shared_ptr<const QueueView>>;

  void On(const PodSeen& command);
  void On(const PodGone& command);
  void On(const ClaimSeen& command);
  void On(const ClaimGone& command);
  void On(const GangSeen& command);
  void On(const GangGone& command);
  void On(const NodeSeen& command);
  void On(const NodeGone& command);
  void On(const OtherPodMoved& command);
  void On(const ClassSeen& command);
  void On(const ClassGone& command);
  void On(const PodGroupSeen& command);
  void On(const PodGroupGone& command);
  void On(const PriorityClassSeen& command);
  void On(const PriorityClassGone& command);
  void On(const WorkloadSeen& command);
  void On(const WorkloadGone& command);
  void On(const ClaimTemplateSeen& command);
  void On(const ClaimTemplateGone& command);
  void On(const VolumeClaimSeen& command);
  void On(const VolumeClaimGone& command);
  void On(const VolumeSeen& command);
  void On(const VolumeGone& command);
  void On(const StorageClassSeen& command);
  void On(const StorageClassGone& command);
  void On(const BlockSeen& command);
  void On(const BlockGone& command);
  void On(const RequestSeen& command);
  void On(const RequestGone& command);
  void On(const BlockOrder& command);
  void On(const BudgetSeen& command);
  void On(const BudgetGone& command);
  void On(const QueueCalendarSeen& command);
  void On(const QueueCalendarGone& command);
  void On(const QueueSeen& command);
  void On(const QueueGone& command);
  void On(const WindowSeen& command);
  void On(const WindowGone& command);
  void On(const DefragmentationSeen& command);
  void On(const DefragmentationGone& command);
  void On(const WatchesSynced& command);
  void On(const ApiResult& command);
  NodeId NodeWithOthers(const std::string& name) const;
  void NoteOffered(const kube::Amounts* before, const kube::Amounts* after);
  void TouchConsumers(const ClaimKey& key);
  void TouchUsers(const std::set<PodKey>& pods);
  void TouchUsersOfVolume(const std::string& volume);
  void TouchUsersOfClass(const std::string& storage_class);
  void TouchGangOf(const PodKey& pod);
  void OnTemplate(const ClaimTemplateKey& key, bool of_other_workload);

  // The numbered steps of Step(), after the first.
  void FinishDecided();
  void PassBlockTime();
  void PlanHeads();
  void ShowChanges();
  StepOutput HandOver();

  void DrainRunNews();
  void OnUndone(const RunNews& news);
  void Remember(const RunNews& news);
  bool MayKeep(const RunNews& news) const;
  bool ExpectsPods(const GangRef& ref) const;
  void TouchRunsOn(const std::string& node);
  void DrainBlockNews();
  void OnNotice(const BlockNotice& notice);
  void TellReclaims();
  void OnNotice(const WindowNotice& notice);
  std::optional<WallTime> BlockEndOf(const GangDecision& decision) const;
  bool TellPods(const GangRun& run, std::optional<WallTime> block_end);
  void MakeWayFor(const Heir& heir);
  Readiness ReadinessOf(const GangRef& ref) const;
  void AddLastEnd(const GangRef& ref, Readiness& ready) const;
  void LimitGrace(PodDeletion& deletion) const;
  void Assess(const GangRef& ref);
  void ReplaceLost(const GangRef& ref);
  void WaitToGrow(const GangRef& ref);
  void Grow(const GangRef& ref, const Planned& planned);
  void WaitForOtherRuns(Readiness& ready) const;
  void MakeGang(const GangRef& ref, Readiness& ready);
  void Show(const GangRef& ref);
  void ShowQueues(QueueViews views);
  void AddDecision(DecisionKind kind, const GangDecision& decision, std::string message = "",
                   GangReason reason = GangReason::kNone);
  std::optional<std::chrono::nanoseconds> WaitedOf(const GangDecision& decision) const;
  WorkloadGang GangForWorkload(const WorkloadKey& key) const;
  void MoveGangs();
  void PlanSome();
  void FollowQueues();
  void FollowWindows();
  std::optional<MonotonicTime> NextWake() const;
  void PublishSnapshot();

  // Writes that follow from facts alone and need no journal.
  struct FromFacts {
    GangMaker maker;
    ClaimMaker claims;
    VolumeNodes volume_nodes;
    WorkloadKeeper workloads;
    QueueStatuses queues;
    QueueCalendarStatuses calendars;
    WindowStatuses windows;
    QueueViews queue_views;  // as shown last
    DefragmentationStatuses defragmentations;
  };

  Facts facts_;
  ClusterState cluster_;
  GangMembership membership_;
  JournalBuffer journal_;
  WriteBuffer writes_;
  GangRuns runs_;
  CapacityBlocks blocks_;
  BlockNotices notices_;
  FromFacts from_facts_;
  BlockRequests requests_;
  Lending lending_;
  Neighbours neighbours_;
  // Hardware that is kept for waiting gangs.
  struct Kept {
    Promises promises;
    Preemption preemption;
    Windows windows;
    Moves moves;
  };
  Kept kept_;
  Successors successors_;
  // Memory of gangs: decisions, and the use of chips.
  struct Past {
    DecisionLog decisions;
    GangUsage usage;
    QueueKeeper queues;
  };
  Past past_;
  SchedulingQueue queue_;
  StatusReporter status_;

  enum class Watches : std::uint8_t { kListing, kJustSynced, kSynced };
  Watches watches_ = Watches::kListing;
  Now now_;  // the time of the step under way
  Counters counters_;
  std::shared_ptr<const Snapshot> snapshot_;
};

}  // namespace tahoma::controller

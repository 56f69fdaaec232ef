// The controller's mind: facts in; decisions, API writes and a new snapshot out.
//
//   Core core(PlanWith(planner));
//   TAHOMA_RETURN_IF_ERROR(journal.Load([&](Sequence sequence, std::string_view bytes) {
//     return core.Restore(sequence, bytes);
//   }));
//   for (;;) {
//     StepOutput out = core.Step(queue.PopAll(1024), now);
//     TAHOMA_RETURN_IF_ERROR(journal.Write(out.journal));   // first …
//     publish(out.writes);                                  // … and only then
//   }
//
// Everything that is decided is in `journal`; nothing of `writes` may be issued before it is
// durable. After a failed journal write the core must not be stepped again. A restart finds the
// journal and the API in any mixture of old and new: each gang is rolled forward or back until it
// is whole or absent. Gangs that the journal does not know (a lost disk) are taken over from what
// is published.
//
// Scope: deterministic: same commands and times, same output. No I/O, no threads, no clock.
//
// Thread safety: belongs to one thread; the snapshots that it hands out are immutable.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "controller/ledger/api_write.h"
#include "controller/ledger/command.h"
#include "controller/ledger/facts.h"
#include "controller/ledger/gang_run.h"
#include "controller/ledger/journal.h"
#include "controller/ledger/notices.h"
#include "controller/ledger/record.h"
#include "controller/ledger/roster.h"
#include "controller/ledger/snapshot.h"
#include "controller/model/cluster.h"
#include "controller/plan/decision.h"

namespace tahoma::controller {

struct CoreOptions {
  // The journal is on the disk of the API server, in its process (standalone mode): neither is lost
  // without the other, and no write outlives the process that sent it. Needed where claims are made
  // with their finalizer (apiserver::ControllerOptions::protect_claims): else every such gang is
  // undone at a start.
  bool journal_beside_api = false;
};

struct StepOutput {
  JournalBatch journal;
  std::vector<ApiWrite> writes;
  // When Step has something to do without any command; nullopt: only a command can move it.
  std::optional<MonotonicTime> wake;
};

class Core {
 public:
  // Gangs between their decision and their last bind. Bounds what a slow API server can pile up.
  static constexpr std::size_t kRunsInFlightMost = 1024;
  // Gangs planned in one step: a step answers new facts, however long the queue is.
  static constexpr std::size_t kPlansPerStepMost = 256;
  // A gang that was undone waits this long before it is planned again.
  static constexpr std::chrono::seconds kUndoneWait{2};

  using PlanFunction =
      std::function<std::vector<Decision>(const ClusterState&, const Queue&, WallTime)>;

  explicit Core(PlanFunction plan, CoreOptions options = {});

  // Takes one entry of the journal, in order, before the first Step. kDataLoss for an entry that
  // cannot be read or that contradicts the ones before.
  absl::Status Restore(Sequence sequence, std::string_view bytes);

  StepOutput Step(const std::vector<Command>& commands, const Now& now);

  std::shared_ptr<const Snapshot> snapshot() const { return snapshot_; }

 private:
  struct RunEntry {
    GangRun run;
    GangRef ref;
    std::vector<Sequence> records;
    std::optional<MonotonicTime> wake;
    bool restored = false;  // begun by an earlier process, or taken over
  };
  struct Waiting {
    std::shared_ptr<const GangSpec> spec;  // nullptr: not ready
    GangReason reason = GangReason::kNone;
    std::string message;
    bool finished = false;
    bool succeeded = false;
  };
  // Higher priority first, then older, then by name.
  using PlanKey = std::tuple<std::int64_t, std::int64_t, GangRef>;
  using RunMember = std::pair<RunId, std::uint32_t>;  // and the index in its decision

  // core.cc: commands
  void Take(const PodSeen& command);
  void Take(const PodGone& command);
  void Take(const ClaimSeen& command);
  void Take(const ClaimGone& command);
  void Take(const GangSeen& command);
  void Take(const GangGone& command);
  void Take(const NodeSeen& command);
  void Take(const NodeGone& command);
  void Take(const ClassSeen& command);
  void Take(const ClassGone& command);
  void Take(const WatchesSynced& command);
  void Take(const ApiResult& command);
  void TellRunsOfPod(const PodKey& key);
  void TellRunsOfClaim(const ClaimKey& key);
  void TouchConsumers(const ClaimKey& key);
  bool HeldByRun(const ClaimKey& key) const;
  void HoldAsPublished(const ClaimKey& key);

  // core.cc: records
  void Commit(const Record& record);
  void CommitAndTell(const Record& record);
  void Apply(Sequence sequence, const Record& record);
  void ApplyPrepared(Sequence sequence, const GangPrepared& record);
  void ApplyReleased(RunId run);
  RunEntry* FindRun(RunId run);

  // core_gangs.cc
  void AdvanceRuns();
  void AdvanceRun(RunId id);
  void Tell(const RunEntry& entry, const Record& record);
  bool IsHeldBack(const RunEntry& entry) const;
  void AssessTouched();
  void Assess(const GangRef& ref);
  void PlanSome();
  void Place(const GangSpec& spec, const Placement& placement);
  void Block(const GangRef& ref, const Blocked& blocked);
  std::string BusyClaim(const ClaimKey& claim) const;
  void Show(const GangRef& ref);
  void ShowPods(const GangRef& ref, const std::string& message);
  // Whether this very pod, not another of its name, has a place.
  bool IsPlaced(const PodFact& pod) const;
  struct Standing;  // core_gangs.cc
  Standing StandingOf(const GangRun& run) const;
  static Standing StandingOf(const Waiting& waiting);
  GangStatus StatusOf(const GangRef& ref, const Standing& standing) const;
  std::string PredictedAllReduce(const GangDecision& decision) const;
  bool EndedBound(const GangRef& ref) const;
  void TellPod(const PodKey& pod, EventReason reason, std::string message, bool warning);
  void TellGang(const GangRef& ref, EventReason reason, std::string message, bool warning);
  void Unqueue(const GangRef& ref);
  void Enqueue(const GangRef& ref, const Waiting& waiting);

  // core_adopt.cc
  void Adopt();
  void DropWhatCameBack();
  void AdoptSuccessors();
  bool HoldsWhatOthersHave(const GangDecision& decision) const;
  void AdoptGang(const GangRef& ref, const std::vector<std::shared_ptr<const PodFact>>& pods);

  const PlanFunction plan_;
  const CoreOptions options_;
  Facts facts_;
  ClusterState cluster_;
  Roster roster_;
  Notices notices_;
  bool synced_ = false;
  bool just_synced_ = false;
  bool capacity_freed_ = false;
  Sequence last_sequence_ = 0;
  std::uint64_t attempts_ = 0;

  std::map<RunId, RunEntry> runs_;
  absl::flat_hash_map<GangRef, RunId> run_of_gang_;
  absl::flat_hash_map<PodKey, RunMember> run_of_pod_;
  absl::flat_hash_map<ClaimKey, std::vector<RunMember>> runs_of_claim_;
  // Pods that name the claim, so that news of it reach them.
  absl::flat_hash_map<ClaimKey, std::set<PodKey>> pods_of_claim_;
  std::set<RunId> touched_runs_;
  std::set<RunId> held_back_;
  // Whose run has ended while pods of theirs are bound that it did not have.
  std::set<GangRef> left_behind_;
  std::set<std::pair<MonotonicTime, RunId>> wakes_;
  std::size_t runs_in_flight_ = 0;

  std::set<GangRef> touched_gangs_;
  absl::flat_hash_map<GangRef, Waiting> waiting_;
  std::set<PlanKey> to_plan_;
  std::set<GangRef> blocked_;
  absl::flat_hash_map<GangRef, MonotonicTime> undone_until_;
  std::set<std::pair<MonotonicTime, GangRef>> undone_wakes_;

  Now now_;         // of the step under way
  StepOutput out_;  // likewise
  Counters counters_;
  PersistentMap<GangRef, std::shared_ptr<const GangView>> views_;
  std::shared_ptr<const Snapshot> snapshot_;
};

// What the claim of a decision occupies.
std::shared_ptr<const Holding> HoldingOf(const GangDecision& decision, const DecidedClaim& claim);

}  // namespace tahoma::controller

// The gangs that have a place: the commit protocol of all of them, from the decision until no trace
// of it is left.
//
//   GangRuns runs(facts, cluster, buffer, writes, {});
//   runs.Begin(std::make_shared<const GangDecision>(decision));    // journals GangPrepared
//   runs.Advance(now);                                             // and later the other records
//   TAHOMA_RETURN_IF_ERROR(journal.Write(buffer.DrainBatch()));     // before `writes` are sent
//   for (const RunNews& news : runs.DrainNews()) Tell(news);        // kBound: all pods are
//
// Each run is a GangRun (gang_run.h). GangRuns knows all of them: which run a pod, a claim or an
// answer belongs to, when each has something to do, its records in the journal, and the devices
// that it holds in the ClusterState. A claim holds what its run has decided, and what the API
// shows, whoever has written that. A restart restores the runs; a gang that is published and that
// the journal does not know is taken over (published_gang.h).
//
// Scope: carrying decisions out. Which gang gets a place, and when, is decided elsewhere
// (scheduling_queue.h): Begin() takes any decision, DrainNews() reports what became of it, and no
// order of service, queue or priority is known here. Messages to people are made in
// status_reporter.h.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/functional/function_ref.h>
#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "controller/core/commit/gang_run.h"
#include "controller/core/commit/published_gang.h"
#include "controller/core/facts/facts.h"
#include "controller/core/facts/gang_membership.h"
#include "controller/core/journal/journal.h"
#include "controller/core/journal/journal_buffer.h"
#include "controller/core/journal/record.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/write_buffer.h"
#include "controller/model/cluster.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// A change in the run of a gang.
struct RunNews {
  enum class Kind : std::uint8_t {
    kMoved,    // some step further; it may have ended
    kBound,    // every pod is bound
    kUndoing,  // it has failed and is taken back
    kUndone,   // nothing of the failed run is left: the gang may be placed again
    kShrunk,   // a member was lost, and the others go on
  };
  Kind kind = Kind::kMoved;
  GangRef gang;
  std::shared_ptr<const GangDecision> decision;
  std::string reason;  // kUndoing, kUndone, kShrunk: why
  EndCause cause = EndCause::kFailed;
  std::vector<std::shared_ptr<const Holding>> freed = {};  // kUndone: what the run gives back
};

// Returns whether a bound gang with minMembers goes on without the lost members.
bool GoesOnWithoutLost(const GangRun& run, const GangFact& gang);

// Frees in a copy of the fleet what the decision has given, devices and room for pods: the fleet
// without that run.
void ReleaseDecided(const GangDecision& decision, ClusterState& fleet);

class GangRuns {
 public:
  // The most runs between their decision and their last bind. Bounds what a slow API server can
  // pile up.
  static constexpr std::size_t kInFlightMost = 1024;
  // The most deletions of pods that wait for their answers: when many Capacity Blocks end at one
  // moment, other writes go in between.
  static constexpr std::size_t kDeletionsMost = 256;
  // The reason for undoing a gang that only a restored backup shows.
  static constexpr const char* kGivenToOthers =
      "its devices were given to others before the API was restored";

  GangRuns(const GangRuns&) = delete;  // the runs count down a number of it
  GangRuns& operator=(const GangRuns&) = delete;
  // All outlive the runs. After a change of `facts` its owner calls the matching On…().
  GangRuns(const Facts& facts, ClusterState& cluster, JournalBuffer& journal, WriteBuffer& writes,
           ReadPublishedOptions options)
      : facts_(facts), cluster_(cluster), options_(options), journal_(journal), writes_(writes) {}

  // Takes one entry of the journal, in order, before anything else. kDataLoss for one that
  // contradicts those before.
  absl::Status Restore(Sequence sequence, const Record& record);

  // Take news. The facts contain it already.
  void OnPod(const PodKey& key);
  void OnClaim(const ClaimKey& key);
  void OnClaimGone(const ClaimFact& claim);
  void OnNodeGone(const std::string& node);
  // The Gang of that name has changed, or is gone.
  void OnGang(const GangKey& key);
  // Moves the time on and ends the runs whose maxRuntime is over. Earlier times are ignored.
  void MoveTo(WallTime now);
  // End the runs that hold devices of the node, or the claim's, or this one: their pods are
  // deleted, with their grace but so that they have ended by then. On the node those of the
  // namespace `spared` stay.
  void EndOn(NodeId node, EndCause cause, const std::string& reason,
             std::optional<WallTime> by = std::nullopt, const std::string& spared = "");
  void EndHolder(const ClaimKey& claim, EndCause cause, const std::string& reason);
  void End(RunId run, EndCause cause, const std::string& reason,
           std::optional<WallTime> by = std::nullopt);
  // Visits the runs that hold devices of the node, one that has several claims there several times.
  void ForEachOn(NodeId node, absl::FunctionRef<void(const GangRun&)> visit) const;
  void OnResult(const ApiResult& result, MonotonicTime now);
  // Says that facts and cluster are complete. Each run compares its pods, claims and nodes with
  // them once more: they may have gone while no controller ran.
  void OnSynced();

  // Begins to carry out a decision. The gang has no run, there is room(), and no other claim holds
  // what the decision gives.
  void Begin(std::shared_ptr<const GangDecision> decision);
  // Ends the runs whose gangs have ended, then takes over every gang that is published and has no
  // run. Called once, when the facts are complete.
  void AdoptPublished(MonotonicTime now);
  // Gives the place of a lost member to another pod, as of now. GangRun::MayApply holds, and no
  // other claim holds what the record gives.
  void Replace(MemberReplaced record);
  // Gives another pod a place in a bound run, as of now, likewise.
  void Add(MemberAdded record);
  // Takes over pods that have the names of an ended run's pods but were bound for a run that the
  // journal has dropped: the API was restored to a time before the gang was made anew.
  void AdoptSuccessors(const GangMembership& membership);

  // Advances every run that has news, or whose time has come.
  void Advance(MonotonicTime now);

  std::vector<RunNews> DrainNews() { return std::exchange(news_, {}); }
  // Returns whether a pod that was counted on a node has ended since the last call.
  bool DrainRoomFreed() { return std::exchange(room_freed_, false); }
  // Returns the gang's run; nullptr without one.
  const GangRun* Find(const GangRef& ref) const;
  // Returns whether this very pod, not another of its name, has a place.
  bool HasPlace(const PodFact& pod) const;
  // Returns whether some pod of that name has one.
  bool HasPod(const PodKey& key) const { return run_of_pod_.contains(key); }
  // Explains why a pod must wait for the claim: another run holds it back. "" when none does.
  std::string BusyClaim(const ClaimKey& claim) const;

  const Facts& facts() const { return facts_; }
  std::size_t in_flight() const { return in_flight_; }
  // Returns whether the run is bound and each of its pods has been ready.
  bool HasStarted(RunId run) const;
  // Returns how many runs may begin now.
  std::size_t room() const { return in_flight_ < kInFlightMost ? kInFlightMost - in_flight_ : 0; }
  // The time at which Advance has something to do without any news.
  std::optional<MonotonicTime> wake() const;
  // The time to which MoveTo must move it then.
  std::optional<WallTime> wake_wall() const;
  // Returns the run that has decided the claim's devices; nullptr when none has.
  const GangRun* FindHolder(const ClaimKey& claim) const;
  // Returns the run of that number; nullptr when nothing of it is left.
  const GangRun* FindRun(RunId run) const;
  // Returns the runs that may be ended for others, by their gangs' priorities. In a Capacity Block
  // of its own no gang may.
  const std::set<std::pair<std::int32_t, RunId>>& preemptible() const { return order_.preemptible; }
  // Returns all runs by the times at which they have ended at the latest: WallTime::max() for those
  // without such a time, the oldest first.
  const std::set<std::pair<WallTime, RunId>>& by_end() const { return order_.by_end; }

 private:
  struct Entry {
    GangRun run;
    GangRef gang;
    std::vector<Sequence> records;
    std::optional<MonotonicTime> wake;
    bool restored = false;                    // begun by an earlier process, or taken over
    bool started = false;                     // bound, and each of its pods has been ready
    std::optional<WallTime> start_end = {};   // until when that may take
    std::optional<WallTime> lost_since = {};  // a member is lost, and may be replaced
  };
  using Member = std::pair<RunId, std::uint32_t>;  // the second is the index in the run's decision

  Entry& At(RunId run);
  void Free(const std::string& claim_uid);
  void CountPod(const PodKey& key);
  void Commit(const Record& record);
  void Apply(Sequence sequence, const Record& record);
  void ApplyPrepared(Sequence sequence, const GangPrepared& record);
  void ApplyStep(Sequence sequence, RunId id, const Record& record);
  void ApplyReleased(RunId id);
  void ApplyReplaced(Sequence sequence, const MemberReplaced& record);
  void ApplyAdded(Sequence sequence, const MemberAdded& record);
  void BeginMember(Entry& entry);
  void Retract(const PodKey& pod, const Member& member);
  void Retract(const ClaimKey& claim, const Member& member);
  void EndSurplus(GangRun& run, const GangFact& gang);
  void LimitUnstarted(Entry& entry, const GangFact* gang);
  void AwaitNext(Entry& entry, const LostMember& lost, std::chrono::seconds within);
  void ForgetMembers(RunId id, const GangDecision& decision);
  void CountRuntime(const GangRun& run, bool counts);
  void TellClaim(const ClaimKey& key);
  void TellAll(RunId id);
  void AdvanceOne(RunId id, MonotonicTime now);
  static RunNews NewsOf(const Entry& entry);
  static RunNews Shrunk(const Entry& entry, const std::string& lost, int members);
  void AddNews(const Entry& entry, const Record& record);
  void FollowMembers(Entry& entry);
  void LimitStart(Entry& entry, std::optional<WallTime> end);
  std::shared_ptr<const GangFact> FactOf(const Entry& entry) const;
  bool IsHeldBack(const Entry& entry) const;
  bool MustGiveWay(const GangDecision& decision) const;
  // Returns whether others hold devices of the decision, as far as `counts`.
  bool HoldsWhatOthersHave(const GangDecision& decision,
                           absl::FunctionRef<bool(const Holding&)> counts) const;
  std::shared_ptr<const Holding> DecidedHolding(const ClaimKey& key, const std::string& uid) const;
  void HoldAsPublished(const ClaimKey& key);
  void Hold(const ClaimKey& key, const std::string& uid, const Allocation* published);
  void LeaveOutWaiting(const GangRef& ref, std::vector<std::shared_ptr<const PodFact>>& pods) const;
  void Adopt(const GangRef& ref, const std::vector<std::shared_ptr<const PodFact>>& pods);

  const Facts& facts_;
  ClusterState& cluster_;
  const ReadPublishedOptions options_;
  JournalBuffer& journal_;
  WriteBuffer& writes_;

  std::map<RunId, Entry> runs_;
  absl::flat_hash_map<GangRef, RunId> run_of_gang_;
  absl::flat_hash_map<PodKey, Member> run_of_pod_;
  absl::flat_hash_map<ClaimKey, std::vector<Member>> runs_of_claim_;
  std::set<RunId> touched_;
  std::set<RunId> held_back_;
  std::size_t deletions_left_ = kDeletionsMost;
  std::set<RunId> starved_;  // those that wait for a deletion to be answered
  // Gangs whose run has ended while pods of theirs are bound that it did not have.
  std::set<GangRef> left_behind_;
  std::set<std::pair<MonotonicTime, RunId>> wakes_;
  // When bound runs have run for their maxRuntime, and when their pods must be ready.
  enum class Limit : std::uint8_t { kRuntime, kStart };
  std::set<std::tuple<WallTime, RunId, Limit>> limits_;
  struct Order {
    std::set<std::pair<std::int32_t, RunId>> preemptible = {};
    std::set<std::pair<WallTime, RunId>> by_end = {};
  };
  Order order_;
  WallTime now_;
  std::size_t in_flight_ = 0;

  std::vector<RunNews> news_;
  bool room_freed_ = false;
};

}  // namespace tahoma::controller

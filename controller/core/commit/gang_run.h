// The commit sequence of one gang through the API: all writes or none.
//
// Prepared: every claim gets its finalizer unless it has it, then allocation and reservations in
// one status write. Allocated: every pod is bound. Bound: waits for the pods to end and the claims
// to be de-allocated. Undoing: pods that were or may have been bound are deleted, then every claim
// is cleared; a pod whose bind has no known outcome counts as bound, because the bind may still
// arrive. Every write has a precondition (resourceVersion or uid), so repeating is safe and a late
// one is refused.
//
// A run that a restart finds half done continues from a fresh read of each object.
//
// Scope: the protocol. It plans nothing, holds no devices and never touches the network.
//
// Thread safety: belongs to one thread.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/facts/facts.h"
#include "controller/core/journal/record.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/write_buffer.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

enum class RunPhase : std::uint8_t { kPrepared, kAllocated, kBound, kUndoing, kReleased };

// A pod of a bound gang that runs no more and has not succeeded, or will not run any more.
struct LostMember {
  std::size_t pod = 0;  // index into GangDecision::pods
  std::string why;      // "pod train-2 failed: container main: exit code 3"
};

// Returns why a member is lost: "pod train-2 was deleted". `fact` is nullptr when the pod is gone.
std::string DescribeLost(const std::string& pod, const PodFact* fact);

class GangRun {
 public:
  // The claims of a gang, and then its pods, may take this long before everything is undone: longer
  // than a rolling restart of an API server, shorter than a person's patience.
  static constexpr std::chrono::seconds kCommitTimeout{60};
  // The API server refuses the same step this often before the run believes it and fails.
  static constexpr int kRefusalsMost = 3;

  // `writes` must outlive the run.
  GangRun(RunId run, std::shared_ptr<const GangDecision> decision, WriteBuffer& writes);

  RunId id() const { return run_; }
  RunPhase phase() const { return phase_; }
  const GangDecision& decision() const { return *decision_; }
  const std::shared_ptr<const GangDecision>& shared_decision() const { return decision_; }
  const std::string& undo_reason() const { return failure_; }
  EndCause end_cause() const { return cause_; }
  // Returns whether the run is on its way out: its devices become free without more.
  bool ending() const { return phase_ == RunPhase::kUndoing || !failure_.empty(); }
  // Returns when the last pod was bound; nullopt before, or when the time is not known.
  std::optional<WallTime> bound_at() const { return bound_at_; }
  bool claim_released(std::size_t claim) const { return claims_[claim].released; }
  // Returns how many pods are known to be bound to their nodes.
  int bound_pods() const;
  // Returns the first member of a bound run that was lost; nullopt when each runs or has succeeded.
  std::optional<LostMember> FindLost() const;
  // Returns the first pod that has never been ready, of a bound run; nullopt when each was, or has
  // ended. After a restart a pod that runs counts as having been ready.
  std::optional<std::size_t> FindUnstarted() const;
  bool member_lost(std::size_t pod) const { return pods_[pod].member_lost && !HasGivenBack(pod); }
  // Returns whether the pod runs, or is to run, and nothing ends it.
  bool goes_on(std::size_t pod) const {
    return !pods_[pod].dead && !pods_[pod].member_lost && !pods_[pod].leaves;
  }
  // Returns how many pods go on or have succeeded.
  int members_left() const;
  // Returns whether another pod may have the place: the pod has ended, and its claims are released.
  bool given_up(std::size_t pod) const;
  // Returns the first pod that has never been ready and goes on, as FindUnstarted().
  bool never_ready(std::size_t pod) const { return !pods_[pod].was_ready && goes_on(pod); }
  // Returns whether the pod does not exist, or has ended.
  bool pod_dead(std::size_t pod) const { return pods_[pod].dead; }
  // Returns since when pods start: the last bind, or the last record of a replaced pod.
  std::optional<WallTime> starts_at() const { return starts_at_; }
  // The time at which Next() has something to do without any news; nullopt: only news can move it.
  std::optional<MonotonicTime> wake() const { return wake_; }

  // Returns whether a record may follow those that were applied (docs/formats/ledger.md, life of a
  // run).
  bool MayApply(const Record& record) const;
  // Makes a record take effect, the only place where a record of this run does. MayApply is true.
  void Apply(const Record& record);

  // Marks a run that an earlier process has begun, whose writes may have come later than the facts
  // were listed: every claim in flight is read first, and every pod may have been sent a bind. Must
  // be called before any other record of the run is applied.
  void MarkRestored() { restored_ = true; }

  // Take news. `fact` is nullptr when the object does not exist, or has another uid.
  void OnPod(std::size_t pod, const PodFact* fact);
  void OnClaim(std::size_t claim, const std::shared_ptr<const ClaimFact>& fact);
  void OnNodeGone(const std::string& node);
  // Undoes the run, whatever its phase. Its pods get no more grace than there is until `by`.
  void End(EndCause cause, const std::string& reason, std::optional<WallTime> by = std::nullopt);
  void OnResult(const ApiResult& result, MonotonicTime now);
  // Lets the run send a deletion of a pod only while `left`, which it counts down, is not 0.
  // Without it there is no limit. `left` must outlive the run.
  void LimitDeletions(std::size_t* left) { deletions_left_ = left; }
  // Returns whether Next() could not send a deletion because of that.
  bool starved() const { return starved_; }
  // Allocates none of its claims while `held_back`: other claims have devices of this run in the
  // API, which was restored from a backup.
  void HoldBack(bool held_back) { held_back_ = held_back; }

  // Keeps the devices of lost members while `keeps`: other pods may take their places.
  void KeepLost(bool keeps) { losses_.kept = keeps; }
  // Lets a member that cannot be had go alone while `goes_on`: the others stay.
  void GoOnWithoutLost(bool goes_on) { losses_.goes_on = goes_on; }
  // Ends a pod of a bound run that GoOnWithoutLost(): it is deleted, with its grace.
  void EndMember(std::size_t pod);
  // Takes the members that were lost since the last call while others go on, for people.
  std::vector<std::string> DrainLost() { return std::exchange(losses_.news, {}); }
  // Does not end the undoing while `kept_back`: somebody must hear of it first.
  void KeepBack(bool kept_back) { kept_back_ = kept_back; }

  // Adds the writes that can be issued now, and returns the record that must be journalled before
  // them, if any. Must be called again after Apply() of that record, until it returns nullopt: then
  // the run waits for news.
  std::optional<Record> Next(MonotonicTime now);

 private:
  struct Track {
    std::uint64_t in_flight = 0;  // attempt of the write under way; 0: none
    int failures = 0;
    int refusals = 0;
    MonotonicTime retry_at{};
  };
  struct ClaimTrack : Track {
    std::shared_ptr<const ClaimFact> seen;  // the newest state we know; nullptr: must be read
    std::string answered;                   // the resourceVersion of the last answer
    std::string told;                       // the resourceVersion that the watch told last
    bool told_gone = false;                 // the watch told, since the last read, that it is gone
    bool gone = false;
    bool settled = false;   // as this phase needs it
    bool live = true;       // Bound: still has our allocation, for a pod of ours
    bool released = false;  // Bound: its devices were given back
  };
  struct PodTrack : Track {
    bool bound = false;         // bound to the decided node
    bool bind_sent = false;     // a bind is in flight
    bool bind_unknown = false;  // a bind without an answer may yet arrive
    bool must_read = false;
    bool lost = false;         // cannot be bound any more
    bool dead = false;         // does not exist, or has finished
    bool evicted = false;      // Undoing: its deletion was accepted
    bool ended_well = false;   // has succeeded
    bool member_lost = false;  // bound: has failed, is being deleted or is gone
    bool was_ready = false;
    bool leaves = false;  // is to be deleted while the others go on
    std::string lost_why;
    bool maybe_bound() const { return bound || bind_sent || bind_unknown; }
  };

  std::optional<Record> NextPrepared(MonotonicTime now);
  std::optional<Record> NextBound(MonotonicTime now);
  std::optional<Record> NextUndoing(MonotonicTime now);
  bool AllocateAll(MonotonicTime now);
  bool BindAll(MonotonicTime now);
  bool EvictAll(MonotonicTime now);
  bool Evict(std::size_t pod, MonotonicTime now);
  void EndLeaving(MonotonicTime now);

  // Returns the next write of the claim, or nullopt when it is settled or has failed (failure_ is
  // set).
  std::optional<WriteKind> TowardsAllocated(std::size_t claim);
  std::optional<WriteKind> TowardsClear(std::size_t claim);
  bool IsAbandoned(std::size_t claim) const;
  // Settles the claim as it is now, or returns kReadClaim when there may be newer news of it.
  std::optional<WriteKind> Settle(std::size_t claim);
  bool HoldsOurs(std::size_t claim, const ClaimFact& fact) const;
  bool ConsumersReserved(std::size_t claim, const ClaimFact& fact) const;
  bool AnyConsumerReserved(std::size_t claim, const ClaimFact& fact) const;
  bool ConsumersDead(std::size_t claim) const;
  // The claims that a pod uses.
  struct PodClaims {
    int held = 0;
    int released = 0;
  };
  PodClaims CountClaims(std::size_t pod) const;
  bool HasGivenBack(std::size_t pod) const;
  bool AwaitsNext(std::size_t claim) const;
  void TakeNext(const MemberReplaced& record);
  void TakeAdded(const MemberAdded& record);
  void Begin(std::uint32_t pod);
  void NoteMember(PodTrack& track, const DecidedPod& pod, const PodFact* fact);
  void RepairClaims();
  void Fail(std::string reason);
  void FailClaim(std::size_t claim, std::string reason);
  void OnClaimResult(ClaimTrack& track, const ApiResult& result, MonotonicTime now);
  void OnBindResult(PodTrack& track, const ApiResult& result, MonotonicTime now);
  void OnPodRead(std::size_t pod, PodTrack& track, const ApiResult& result, MonotonicTime now);
  void Retry(Track& track, MonotonicTime now);
  bool Ready(const Track& track, MonotonicTime now);
  void WakeAt(MonotonicTime when);
  void IssueClaimWrite(std::size_t index, WriteKind kind);
  void Issue(Track& track, Write what);

  const RunId run_;
  std::shared_ptr<const GangDecision> decision_;
  RunPhase phase_ = RunPhase::kPrepared;
  bool restored_ = false;
  bool held_back_ = false;
  bool kept_back_ = false;
  // The treatment of lost members.
  struct Losses {
    bool kept = false;     // next pods take their places
    bool goes_on = false;  // the others go on without
    std::vector<std::string> news = {};
  };
  Losses losses_;
  std::string failure_;
  std::optional<WallTime> by_;  // when its pods must have ended
  EndCause cause_ = EndCause::kFailed;
  std::optional<WallTime> bound_at_;
  std::optional<WallTime> starts_at_;
  std::optional<MonotonicTime> deadline_;
  std::optional<MonotonicTime> wake_;
  std::vector<ClaimTrack> claims_;
  std::vector<PodTrack> pods_;
  std::size_t* deletions_left_ = nullptr;
  bool starved_ = false;
  WriteBuffer* writes_;
};

// Returns whether both give the same devices to the same requests.
bool SameDevices(const Allocation& a, const Allocation& b);

}  // namespace tahoma::controller

// One gang's way through the API: all of it or nothing.
//
//   GangRun run(17, decision);
//   while (std::optional<Record> record = run.Next(now, attempts, writes)) {
//     journal(*record);                    // before any of `writes` is issued
//     run.Apply(*record);
//   }
//   …
//   run.OnResult(result, now);             // and Next() again
//
// Prepared: every claim gets its finalizer unless it has it, then allocation and reservations in
// one status write. Allocated: every pod is bound. Bound: waits for the pods to end and the claims
// to be de-allocated. Undoing: pods that were or may have been bound are deleted, then every claim
// is cleared; a pod whose bind has no known outcome counts as bound, because the bind may still
// arrive. Every write has a precondition (resourceVersion or uid), so repeating is safe and a late
// one is refused.
//
// A run that a restart finds half done goes on from what a fresh read of each object says.
//
// Scope: the protocol. It plans nothing, holds no devices and never touches the network.
//
// Thread safety: belongs to one thread.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/ledger/api_write.h"
#include "controller/ledger/facts.h"
#include "controller/ledger/record.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

enum class RunPhase : std::uint8_t { kPrepared, kAllocated, kBound, kUndoing, kReleased };

class GangRun {
 public:
  // How long the claims of a gang, and then its pods, may take before everything is undone. Longer
  // than a rolling restart of an API server, shorter than a person's patience.
  static constexpr std::chrono::seconds kCommitTimeout{60};
  // A write that fails waits this long, doubled with every failure in a row.
  static constexpr std::chrono::milliseconds kRetryFirst{50};
  static constexpr std::chrono::milliseconds kRetryMost{5000};
  // The API server says "no" to the same step this often before we believe it.
  static constexpr int kRefusalsMost = 3;

  GangRun(RunId run, std::shared_ptr<const GangDecision> decision);

  RunId id() const { return run_; }
  RunPhase phase() const { return phase_; }
  const GangDecision& decision() const { return *decision_; }
  const std::shared_ptr<const GangDecision>& shared_decision() const { return decision_; }
  const std::string& undo_reason() const { return failure_; }
  bool claim_released(std::size_t claim) const { return claims_[claim].released; }
  // How many pods are known to be bound to their nodes.
  int bound_pods() const;
  // When Next() has something to do without any news; nullopt: only news can move it.
  std::optional<MonotonicTime> wake() const { return wake_; }

  // Whether a record may follow those that were applied (docs/formats/ledger.md, life of a run).
  bool MayApply(const Record& record) const;
  // The one place where a record of this run takes effect. It may be applied.
  void Apply(const Record& record);

  // The run was begun by an earlier process, whose writes may have come later than the facts were
  // listed: every claim in flight is read first, and every pod may have been sent a bind. To be
  // called before any other record of the run is applied.
  void MarkRestored() { restored_ = true; }

  // News. `fact` is nullptr when the object does not exist, or has another uid.
  void OnPod(std::size_t pod, const PodFact* fact);
  void OnClaim(std::size_t claim, const std::shared_ptr<const ClaimFact>& fact);
  void OnNodeGone(const std::string& node);
  void OnResult(const ApiResult& result, MonotonicTime now);
  // While other claims have devices of this run in the API, which was restored from a backup, none
  // of its claims is allocated.
  void HoldBack(bool held_back) { held_back_ = held_back; }

  // Appends the writes that can be issued now, and returns the record that must be journalled
  // before them, if any. To be called again after Apply() of that record; nullopt means no more
  // until there is news. `attempts` numbers the writes.
  std::optional<Record> Next(MonotonicTime now, std::uint64_t& attempts,
                             std::vector<ApiWrite>& writes);

 private:
  struct Track {
    std::uint64_t in_flight = 0;  // attempt of the write under way; 0: none
    int failures = 0;
    int refusals = 0;
    MonotonicTime retry_at{};
  };
  struct ClaimTrack : Track {
    std::shared_ptr<const ClaimFact> seen;  // the newest we know; nullptr: must be read
    std::string answered;                   // the resourceVersion that an answer told last
    std::string told;                       // the resourceVersion that the watch told last
    bool told_gone = false;                 // the watch told, since the last read, that it is gone
    bool gone = false;
    bool settled = false;   // as this phase wants it
    bool live = true;       // Bound: still has our allocation, for a pod of ours
    bool released = false;  // Bound: its devices were given back
  };
  struct PodTrack : Track {
    bool bound = false;         // to the decided node
    bool bind_sent = false;     // a bind is in flight
    bool bind_unknown = false;  // a bind without an answer may yet arrive
    bool must_read = false;
    bool lost = false;     // cannot be bound any more
    bool dead = false;     // does not exist, or has finished
    bool evicted = false;  // Undoing: its deletion was accepted
    std::string lost_why;
    bool maybe_bound() const { return bound || bind_sent || bind_unknown; }
  };

  std::optional<Record> NextPrepared(MonotonicTime now);
  std::optional<Record> NextBound(MonotonicTime now);
  std::optional<Record> NextUndoing(MonotonicTime now);
  bool AllocateAll(MonotonicTime now);
  bool BindAll(MonotonicTime now);
  bool EvictAll(MonotonicTime now);

  // The next write of the claim, or nullopt when it is settled or has failed (failure_ is set).
  std::optional<WriteKind> TowardsAllocated(std::size_t claim);
  std::optional<WriteKind> TowardsClear(std::size_t claim);
  // Settles what the claim is by the newest word of it; kReadClaim when that may be newer still.
  std::optional<WriteKind> Settle(std::size_t claim);
  bool HoldsOurs(std::size_t claim, const ClaimFact& fact) const;
  bool ConsumersReserved(std::size_t claim, const ClaimFact& fact) const;
  bool AnyConsumerReserved(std::size_t claim, const ClaimFact& fact) const;
  bool ConsumersDead(std::size_t claim) const;
  void RepairClaims();
  void Fail(std::string reason);
  void OnClaimResult(ClaimTrack& track, const ApiResult& result, MonotonicTime now);
  void OnBindResult(PodTrack& track, const ApiResult& result, MonotonicTime now);
  void OnPodRead(std::size_t pod, PodTrack& track, const ApiResult& result, MonotonicTime now);
  void Retry(Track& track, MonotonicTime now);
  bool Ready(const Track& track, MonotonicTime now);
  void WakeAt(MonotonicTime when);
  void Issue(Track& track, WriteKind kind, std::size_t index,
             std::shared_ptr<const ClaimFact> base = nullptr);

  const RunId run_;
  const std::shared_ptr<const GangDecision> decision_;
  RunPhase phase_ = RunPhase::kPrepared;
  bool restored_ = false;
  bool held_back_ = false;
  std::string failure_;
  std::optional<MonotonicTime> deadline_;
  std::optional<MonotonicTime> wake_;
  std::vector<ClaimTrack> claims_;
  std::vector<PodTrack> pods_;
  // Only while Next() runs.
  std::uint64_t* attempts_ = nullptr;
  std::vector<ApiWrite>* writes_ = nullptr;
};

// Whether both give the same devices to the same requests.
bool SameDevices(const Allocation& a, const Allocation& b);

}  // namespace tahoma::controller

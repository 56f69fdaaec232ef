#include "controller/core/commit/gang_run.h"

#include <algorithm>
#include <utility>

#include "controller/core/writes/outbox.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/kube/resource_version.h"

namespace tahoma::controller {
bool SameDevices(const Allocation& a, const Allocation& b) {
  return std::equal(a.results.begin(), a.results.end(), b.results.begin(), b.results.end(),
                    [](const DeviceResult& left, const DeviceResult& right) {
                      return left.request == right.request && left.driver == right.driver &&
                             left.pool == right.pool && left.device == right.device;
                    });
}

std::string DescribeLost(const std::string& pod, const PodFact* fact) {
  if (fact == nullptr) return fmt::format("pod {} was deleted", pod);
  if (fact->finished) return fmt::format("pod {} failed{}", pod, fact->Trouble());
  return fmt::format("pod {} is being deleted", pod);
}

GangRun::GangRun(RunId run, std::shared_ptr<const GangDecision> decision, WriteBuffer& writes)
    : run_(run),
      decision_(std::move(decision)),
      claims_(decision_->claims.size()),
      pods_(decision_->pods.size()),
      writes_(&writes) {
  for (const DecidedClaim& claim : decision_->claims) {
    for (const std::uint32_t pod : claim.consumers) TAHOMA_CHECK(pod < pods_.size());
  }
}

int GangRun::bound_pods() const {
  return static_cast<int>(
      std::count_if(pods_.begin(), pods_.end(), [](const PodTrack& pod) { return pod.bound; }));
}

int GangRun::members_left() const {
  int left = 0;
  for (std::size_t i = 0; i < pods_.size(); ++i) left += goes_on(i) || pods_[i].ended_well ? 1 : 0;
  return left;
}

bool GangRun::given_up(std::size_t pod) const {
  return pods_[pod].dead && CountClaims(pod).held == 0;
}

void GangRun::EndMember(std::size_t pod) {
  TAHOMA_CHECK(phase_ == RunPhase::kBound && losses_.goes_on);  // else all end together
  pods_[pod].leaves = true;
}

bool GangRun::MayApply(const Record& record) const {
  struct Visitor {
    const GangRun& run;
    bool operator()(const GangPrepared&) const { return false; }
    bool operator()(const GangAllocated&) const { return run.phase_ == RunPhase::kPrepared; }
    bool operator()(const GangBound&) const { return run.phase_ == RunPhase::kAllocated; }
    bool operator()(const ClaimReleased& r) const {
      return run.phase_ == RunPhase::kBound && r.claim < run.claims_.size() &&
             !run.claims_[r.claim].released;
    }
    bool operator()(const MemberReplaced& r) const {
      return run.phase_ == RunPhase::kBound && MayFollow(r, *run.decision_) &&
             std::ranges::none_of(r.claims, [&](const MemberReplaced::Claim& claim) {
               return run.claims_[claim.index].released;
             });
    }
    bool operator()(const MemberAdded& r) const {
      return run.phase_ == RunPhase::kBound && MayFollow(r, *run.decision_) &&
             run.CountClaims(r.pod).held == 0;
    }
    bool operator()(const GangUndoing&) const {
      return run.phase_ != RunPhase::kUndoing && run.phase_ != RunPhase::kReleased;
    }
    bool operator()(const GangReleased&) const {
      return run.phase_ == RunPhase::kBound || run.phase_ == RunPhase::kUndoing;
    }
  };
  return std::visit(Visitor{*this}, record);
}

void GangRun::Apply(const Record& record) {
  TAHOMA_CHECK(MayApply(record));  // else a bind could be sent before its claim is allocated
  deadline_.reset();
  if (std::holds_alternative<GangAllocated>(record)) {
    phase_ = RunPhase::kAllocated;
    // Binds are sent from here on. Those that an earlier process has sent may arrive at any time.
    for (PodTrack& pod : pods_) pod.bind_unknown = restored_;
  } else if (const auto* bound = std::get_if<GangBound>(&record)) {
    phase_ = RunPhase::kBound;
    bound_at_ = starts_at_ = bound->at;
    for (ClaimTrack& claim : claims_) {
      claim.settled = true;
      claim.seen = nullptr;  // nobody needs it until the gang ends
    }
    for (PodTrack& pod : pods_) pod.bound = true;
  } else if (const auto* released = std::get_if<ClaimReleased>(&record)) {
    claims_[released->claim].released = true;
    claims_[released->claim].settled = true;
  } else if (const auto* replaced = std::get_if<MemberReplaced>(&record)) {
    TakeNext(*replaced);
  } else if (const auto* added = std::get_if<MemberAdded>(&record)) {
    TakeAdded(*added);
  } else if (const auto* undoing = std::get_if<GangUndoing>(&record)) {
    phase_ = RunPhase::kUndoing;
    failure_ = undoing->reason;
    by_ = undoing->by;
    cause_ = undoing->cause;
    for (ClaimTrack& claim : claims_) {
      claim.settled = claim.released;
      claim.retry_at = {};
    }
    for (PodTrack& pod : pods_) {
      pod.retry_at = {};
      pod.must_read = false;
    }
  } else if (std::holds_alternative<GangReleased>(record)) {
    phase_ = RunPhase::kReleased;
  }
}

// Lets the next pod be bound when its claims are allocated, as RepairClaims() does for pods that an
// older API shows.
void GangRun::TakeNext(const MemberReplaced& record) {
  decision_ = std::make_shared<const GangDecision>(WithMember(*decision_, record));
  starts_at_ = record.at;
  Begin(record.pod);
}

void GangRun::TakeAdded(const MemberAdded& record) {
  decision_ = std::make_shared<const GangDecision>(WithMember(*decision_, record));
  starts_at_ = record.at;
  pods_.resize(decision_->pods.size());
  claims_.resize(decision_->claims.size());
  Begin(record.pod);
}

void GangRun::Begin(std::uint32_t index) {
  PodTrack& pod = pods_[index];
  pod = {};
  pod.bind_unknown = pod.must_read = restored_;
  for (std::size_t i = 0; i < claims_.size(); ++i) {
    const auto& consumers = decision_->claims[i].consumers;
    if (std::ranges::find(consumers, index) != consumers.end()) claims_[i] = {};
  }
}

void GangRun::OnPod(std::size_t index, const PodFact* fact) {
  PodTrack& track = pods_[index];
  const DecidedPod& pod = decision_->pods[index];
  track.dead = fact == nullptr || fact->finished;
  if (track.dead) track.must_read = false;
  NoteMember(track, pod, fact);
  if (fact != nullptr && !fact->node.empty() && fact->node == pod.node) {
    track.bound = true;
    track.must_read = false;
    return;
  }
  if (fact != nullptr && fact->alive() && fact->node.empty()) {
    // The fact is an event from before our bind, or the API server was restored: a read tells
    // which.
    if (phase_ == RunPhase::kBound) track.must_read = true;
    return;
  }
  if (track.bound) return;  // the pod ran, and has ended
  track.lost = true;
  track.bind_unknown = false;  // a bind that arrives now is refused
  if (fact == nullptr) {
    track.lost_why = fmt::format("pod {} was deleted", pod.name);
  } else if (!fact->alive()) {
    track.lost_why = fmt::format("pod {} is ending", pod.name);
  } else {
    track.lost_why =
        fmt::format("pod {} was bound to node {} by someone else", pod.name, fact->node);
  }
}

// Notes the progress of a pod.
void GangRun::NoteMember(PodTrack& track, const DecidedPod& pod, const PodFact* fact) {
  if (fact != nullptr && fact->succeeded) track.ended_well = true;
  if (fact != nullptr && (fact->ready || (restored_ && fact->running))) track.was_ready = true;
  const bool lost = (fact == nullptr || !fact->alive()) && !track.ended_well;
  if (!lost || track.member_lost) return;
  track.member_lost = true;
  track.lost_why = DescribeLost(pod.name, fact);
  if (HasGivenBack(static_cast<std::size_t>(&track - pods_.data()))) return;  // long ago
  losses_.news.push_back(
      fmt::format("{} (rank {} on node {})", track.lost_why, pod.rank, pod.node));
}

std::optional<LostMember> GangRun::FindLost() const {
  if (phase_ != RunPhase::kBound) return std::nullopt;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (!member_lost(i)) continue;
    const DecidedPod& pod = decision_->pods[i];
    return LostMember{
        i, fmt::format("{} (rank {} on node {})", pods_[i].lost_why, pod.rank, pod.node)};
  }
  return std::nullopt;
}

// Returns whether the pod had claims and each was released. Claims of a lost member are not
// released: the pod has succeeded, even if nobody knows of the success after a restart.
bool GangRun::HasGivenBack(std::size_t pod) const {
  const PodClaims claims = CountClaims(pod);
  return claims.held == 0 && claims.released > 0;
}

GangRun::PodClaims GangRun::CountClaims(std::size_t pod) const {
  PodClaims count;
  for (std::size_t i = 0; i < claims_.size(); ++i) {
    const auto& consumers = decision_->claims[i].consumers;
    if (std::ranges::find(consumers, pod) == consumers.end()) continue;
    ++(claims_[i].released ? count.released : count.held);
  }
  return count;
}

// Returns whether a lost pod used the claim whose place another may take.
bool GangRun::AwaitsNext(std::size_t claim) const {
  const auto& consumers = decision_->claims[claim].consumers;
  return losses_.kept && std::ranges::any_of(consumers, [&](std::uint32_t pod) {
           return pods_[pod].member_lost && !pods_[pod].ended_well;
         });
}

std::optional<std::size_t> GangRun::FindUnstarted() const {
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (!pods_[i].was_ready && !pods_[i].dead) return i;
  }
  return std::nullopt;
}

void GangRun::OnClaim(std::size_t index, const std::shared_ptr<const ClaimFact>& fact) {
  ClaimTrack& track = claims_[index];
  // The watch may lag behind the answers to our own writes: devices that an old fact shows as free
  // are still allocated.
  if (fact != nullptr && kube::IsOlderVersion(fact->resource_version, track.answered)) return;
  track.live = fact != nullptr && HoldsOurs(index, *fact);
  track.told_gone = fact == nullptr;
  if (fact != nullptr) track.told = fact->resource_version;
  if (fact == nullptr) {
    if (track.in_flight == 0) track.gone = true;
  } else if (track.seen == nullptr && track.in_flight == 0 && phase_ == RunPhase::kPrepared &&
             track.failures == 0 && !restored_) {
    track.seen = fact;  // the first fact is as good as a read: a stale one meets a conflict
  }
}

void GangRun::OnNodeGone(const std::string& node) {
  if (phase_ != RunPhase::kPrepared && phase_ != RunPhase::kAllocated) return;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (decision_->pods[i].node == node && !pods_[i].maybe_bound()) {
      Fail(fmt::format("node {} is gone", node));
      return;
    }
  }
}

void GangRun::End(EndCause cause, const std::string& reason, std::optional<WallTime> by) {
  if (failure_.empty()) cause_ = cause;
  Fail(reason);
  if (!by || (by_ && *by_ <= *by)) return;
  by_ = by;
  // Pods that are being deleted already may have been given more.
  for (PodTrack& pod : pods_) pod.evicted = false;
}

void GangRun::OnResult(const ApiResult& result, MonotonicTime now) {
  const bool about_claim = TargetOf(result.kind) == WriteTarget::kClaim;
  if (result.index >= (about_claim ? claims_.size() : pods_.size())) return;
  Track& track = about_claim ? static_cast<Track&>(claims_[result.index]) : pods_[result.index];
  if (track.in_flight == 0 || track.in_flight != result.attempt) return;  // it was answered before
  track.in_flight = 0;
  if (about_claim) {
    OnClaimResult(claims_[result.index], result, now);
    return;
  }
  PodTrack& pod = pods_[result.index];
  if (result.kind == WriteKind::kBind) {
    OnBindResult(pod, result, now);
  } else if (result.kind == WriteKind::kReadPod) {
    OnPodRead(result.index, pod, result, now);
  } else if (result.outcome == WriteOutcome::kDone || result.outcome == WriteOutcome::kGone) {
    pod.evicted = true;
    if (result.outcome == WriteOutcome::kGone) pod.dead = true;
  } else if (result.outcome == WriteOutcome::kConflict) {
    pod.must_read = true;  // the name may belong to another pod by now, or this one runs on
    Retry(pod, now);
  } else {
    Retry(pod, now);
  }
}

void GangRun::OnClaimResult(ClaimTrack& track, const ApiResult& result, MonotonicTime now) {
  track.seen = nullptr;
  switch (result.outcome) {
    case WriteOutcome::kDone:
      track.seen = result.claim;
      if (result.claim != nullptr) track.answered = result.claim->resource_version;
      if (result.kind == WriteKind::kReadClaim) {
        track.told.clear();  // nothing is newer than what the API server says now
        track.told_gone = false;
      }
      track.failures = 0;
      return;
    case WriteOutcome::kConflict:
      return;  // the claim is read again at once
    case WriteOutcome::kGone:
      track.gone = true;
      return;
    case WriteOutcome::kRefused:
      ++track.refusals;
      if (track.refusals >= kRefusalsMost && phase_ != RunPhase::kUndoing) {
        FailClaim(result.index, result.message);
      }
      break;
    case WriteOutcome::kUnavailable:
      break;
  }
  Retry(track, now);
}

void GangRun::OnBindResult(PodTrack& track, const ApiResult& result, MonotonicTime now) {
  track.bind_sent = false;
  switch (result.outcome) {
    case WriteOutcome::kDone:
      track.bound = true;
      track.failures = 0;
      return;
    case WriteOutcome::kConflict:
      track.must_read = true;
      return;
    case WriteOutcome::kGone:
      track.lost = true;
      track.lost_why = fmt::format("pod {} was deleted", decision_->pods[result.index].name);
      return;
    case WriteOutcome::kRefused:
      ++track.refusals;
      if (track.refusals >= kRefusalsMost) {
        track.lost = true;
        track.lost_why = result.message;
      }
      break;
    case WriteOutcome::kUnavailable:
      track.bind_unknown = true;
      break;
  }
  Retry(track, now);
}

void GangRun::OnPodRead(std::size_t index, PodTrack& track, const ApiResult& result,
                        MonotonicTime now) {
  if (result.outcome == WriteOutcome::kGone) {
    track.must_read = false;
    OnPod(index, nullptr);
    return;
  }
  if (result.outcome != WriteOutcome::kDone || result.pod == nullptr) {
    Retry(track, now);
    return;
  }
  const PodFact& pod = *result.pod;
  track.must_read = false;
  if (pod.uid != decision_->pods[index].uid) {
    OnPod(index, nullptr);
  } else if (pod.alive() && pod.node.empty() && pod.gated) {
    track.lost = true;
    track.lost_why = fmt::format("pod {} has scheduling gates", decision_->pods[index].name);
  } else if (pod.alive() && pod.node.empty()) {
    if (track.bound && phase_ == RunPhase::kBound) RepairClaims();
    track.bound = false;  // it is not, or not any more: the bind is sent again
    if (phase_ != RunPhase::kBound) Retry(track, now);
  } else {
    OnPod(index, &pod);
  }
}

// Publishes the decision again, as the API lost what we wrote (it was restored from an older
// backup): every claim of it before any pod is bound.
void GangRun::RepairClaims() {
  for (ClaimTrack& claim : claims_) {
    if (claim.released) continue;
    claim.settled = false;
    claim.seen = nullptr;
  }
}

std::optional<Record> GangRun::Next(MonotonicTime now) {
  wake_.reset();
  switch (phase_) {
    case RunPhase::kPrepared:
    case RunPhase::kAllocated:
      return NextPrepared(now);
    case RunPhase::kBound:
      return NextBound(now);
    case RunPhase::kUndoing:
      return NextUndoing(now);
    case RunPhase::kReleased:
      break;
  }
  return std::nullopt;
}

std::optional<Record> GangRun::NextPrepared(MonotonicTime now) {
  if (!deadline_) deadline_ = now + kCommitTimeout;
  for (const PodTrack& pod : pods_) {
    if (pod.lost && !pod.bound) Fail(pod.lost_why);
  }
  if (now >= *deadline_) {
    Fail(fmt::format("the API did not take the {} within {} seconds",
                     phase_ == RunPhase::kPrepared ? "allocations" : "bindings",
                     kCommitTimeout.count()));
  }
  if (failure_.empty() && AllocateAll(now)) {
    if (phase_ == RunPhase::kPrepared) return GangAllocated{run_};
    if (BindAll(now)) return GangBound{run_};
  }
  if (!failure_.empty()) return GangUndoing{run_, failure_, by_, cause_};
  WakeAt(*deadline_);
  return std::nullopt;
}

std::optional<Record> GangRun::NextBound(MonotonicTime now) {
  // The devices of a run that ends are given back together, at the end.
  if (!failure_.empty()) return GangUndoing{run_, failure_, by_, cause_};
  bool all_released = true;
  for (std::size_t i = 0; i < claims_.size(); ++i) {
    if (claims_[i].released) continue;
    all_released = all_released && !AwaitsNext(i);
    if (AwaitsNext(i)) continue;
    // Some write on the way may allocate the claim yet.
    if (losses_.goes_on && !claims_[i].settled) {
      all_released = false;
      continue;
    }
    if ((!claims_[i].live || claims_[i].gone) && ConsumersDead(i)) {
      return ClaimReleased{run_, static_cast<std::uint32_t>(i)};
    }
    all_released = false;
  }
  if (all_released &&
      std::all_of(pods_.begin(), pods_.end(), [](const PodTrack& pod) { return pod.dead; })) {
    return GangReleased{run_};
  }
  for (PodTrack& pod : pods_) {
    const bool awaits_next = losses_.kept && pod.member_lost;
    if (!pod.lost || pod.bound || pod.dead || awaits_next) continue;
    pod.leaves = pod.leaves || losses_.goes_on;
    if (!pod.leaves) Fail(pod.lost_why);
  }
  EndLeaving(now);
  if (AllocateAll(now)) BindAll(now);
  if (!failure_.empty()) return GangUndoing{run_, failure_, by_, cause_};
  // Claims that were just cleared are released at once: no news of them need come.
  for (std::size_t i = 0; i < claims_.size(); ++i) {
    const ClaimTrack& claim = claims_[i];
    if (claim.settled && !claim.live && !claim.released && IsAbandoned(i)) return NextBound(now);
  }
  return std::nullopt;
}

std::optional<Record> GangRun::NextUndoing(MonotonicTime now) {
  if (!EvictAll(now)) return std::nullopt;
  bool all = true;
  for (std::size_t i = 0; i < claims_.size(); ++i) {
    ClaimTrack& track = claims_[i];
    if (track.settled) continue;
    if (Ready(track, now)) {
      if (const std::optional<WriteKind> kind = TowardsClear(i)) IssueClaimWrite(i, *kind);
    }
    all = all && track.settled;
  }
  if (all && !kept_back_) return GangReleased{run_};
  return std::nullopt;
}

// Issues the next write of each claim. Returns whether every claim is as decided.
bool GangRun::AllocateAll(MonotonicTime now) {
  bool all = true;
  for (std::size_t i = 0; i < claims_.size() && failure_.empty(); ++i) {
    ClaimTrack& track = claims_[i];
    if (track.settled) continue;
    if (Ready(track, now)) {
      const auto kind = IsAbandoned(i) ? TowardsClear(i) : TowardsAllocated(i);
      if (kind) IssueClaimWrite(i, *kind);
      // Cleared: no write of ours will allocate the claim.
      if (track.settled && IsAbandoned(i)) track.live = false;
    }
    all = all && track.settled;
  }
  return all && failure_.empty();
}

bool GangRun::BindAll(MonotonicTime now) {
  // No pod is bound before the record that all claims are allocated is on disk.
  TAHOMA_CHECK(phase_ == RunPhase::kAllocated || phase_ == RunPhase::kBound);
  bool all = true;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    PodTrack& track = pods_[i];
    if ((track.bound || track.dead || track.leaves) && !track.must_read) continue;
    all = false;
    if (!Ready(track, now)) continue;
    const WriteKind kind = track.must_read ? WriteKind::kReadPod : WriteKind::kBind;
    track.bind_sent = kind == WriteKind::kBind;
    Issue(track, PodWrite{kind, run_, static_cast<std::uint32_t>(i), decision_});
  }
  return all;
}

// Deletes the pods that may be bound. Returns whether no pod of the gang runs or may come to run.
bool GangRun::EvictAll(MonotonicTime now) {
  bool all = true;
  starved_ = false;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    PodTrack& track = pods_[i];
    if (!track.maybe_bound() || track.dead) continue;
    all = false;
    if (!Evict(i, now)) break;
  }
  return all;
}

// Issues the next write towards the end of the pod. Returns false when no pod may be deleted now.
bool GangRun::Evict(std::size_t pod, MonotonicTime now) {
  PodTrack& track = pods_[pod];
  if (track.evicted || !Ready(track, now)) return true;
  const auto index = static_cast<std::uint32_t>(pod);
  if (track.must_read) {
    Issue(track, PodWrite{WriteKind::kReadPod, run_, index, decision_});
    return true;
  }
  starved_ = deletions_left_ != nullptr && *deletions_left_ == 0;
  if (starved_) return false;
  if (deletions_left_ != nullptr) --*deletions_left_;
  Issue(track, PodDeletion{run_, index, decision_, by_});
  return true;
}

// Deletes the pods that leave a gang that goes on.
void GangRun::EndLeaving(MonotonicTime now) {
  starved_ = false;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (pods_[i].leaves && !pods_[i].dead && !Evict(i, now)) return;
  }
}

std::optional<WriteKind> GangRun::TowardsAllocated(std::size_t index) {
  ClaimTrack& track = claims_[index];
  const DecidedClaim& claim = decision_->claims[index];
  if (!track.gone && track.seen == nullptr) return WriteKind::kReadClaim;
  if (track.gone || track.seen->uid != claim.uid || track.seen->deleting) {
    FailClaim(index, fmt::format("claim {} was deleted", claim.name));
    return std::nullopt;
  }
  const ClaimFact& seen = *track.seen;
  // Its pods ran and have ended while no controller looked: devices would be given to nobody.
  if (ConsumersDead(index)) return Settle(index);
  if (seen.allocation == nullptr && claim.allocated_before) {
    FailClaim(index, fmt::format("claim {} was de-allocated by someone else", claim.name));
    return std::nullopt;
  }
  if (seen.allocation == nullptr) {
    if (held_back_) return std::nullopt;
    return seen.protected_by_finalizer ? WriteKind::kAllocate : WriteKind::kAddFinalizer;
  }
  if (!claim.allocated_before && !SameDevices(*seen.allocation, claim.allocation)) {
    FailClaim(index, fmt::format("claim {} was allocated by someone else", claim.name));
    return std::nullopt;
  }
  if (!ConsumersReserved(index, seen)) return WriteKind::kAllocate;
  return Settle(index);
}

std::optional<WriteKind> GangRun::Settle(std::size_t index) {
  ClaimTrack& track = claims_[index];
  // A fact from a watch may be old, and here no write of ours follows that would meet a conflict.
  // An answer may be old, too: the watch can overtake it, and then has nothing more to tell.
  if (track.seen->resource_version != track.answered || track.told_gone ||
      kube::IsOlderVersion(track.answered, track.told)) {
    return WriteKind::kReadClaim;
  }
  track.settled = true;
  track.live = HoldsOurs(index, *track.seen);
  return std::nullopt;
}

std::optional<WriteKind> GangRun::TowardsClear(std::size_t index) {
  ClaimTrack& track = claims_[index];
  const DecidedClaim& claim = decision_->claims[index];
  if (!track.gone && track.seen == nullptr) return WriteKind::kReadClaim;
  track.settled = true;
  if (track.gone || track.seen->uid != claim.uid) return std::nullopt;
  const ClaimFact& seen = *track.seen;
  track.settled = false;
  if (seen.allocation != nullptr) {
    const bool ours = !claim.allocated_before && SameDevices(*seen.allocation, claim.allocation);
    if (AnyConsumerReserved(index, seen) || (ours && seen.reserved_for.empty())) {
      return WriteKind::kDeallocate;
    }
  } else if (seen.protected_by_finalizer && seen.reserved_for.empty() && !claim.allocated_before) {
    // The write is a fence, too: it changes the resourceVersion, so that an allocation of ours that
    // got no answer and has not arrived yet is refused.
    return WriteKind::kRemoveFinalizer;
  }
  track.settled = true;
  return std::nullopt;
}

// Returns whether all pods of the claim have ended, and the run goes on without them.
bool GangRun::IsAbandoned(std::size_t claim) const {
  return phase_ == RunPhase::kBound && losses_.goes_on && ConsumersDead(claim);
}

// Whether the claim has the devices of this run, and a pod of it uses them. An allocation that only
// pods of others use is theirs: it is held as it is published.
bool GangRun::HoldsOurs(std::size_t index, const ClaimFact& fact) const {
  const DecidedClaim& claim = decision_->claims[index];
  return fact.allocation != nullptr &&
         (claim.allocated_before || SameDevices(*fact.allocation, claim.allocation)) &&
         AnyConsumerReserved(index, fact);
}

bool GangRun::ConsumersReserved(std::size_t claim, const ClaimFact& fact) const {
  const auto& consumers = decision_->claims[claim].consumers;
  return std::all_of(consumers.begin(), consumers.end(), [&](std::uint32_t pod) {
    return pods_[pod].dead || fact.ReservedFor(decision_->pods[pod].uid);
  });
}

bool GangRun::AnyConsumerReserved(std::size_t claim, const ClaimFact& fact) const {
  const auto& consumers = decision_->claims[claim].consumers;
  return std::any_of(consumers.begin(), consumers.end(),
                     [&](std::uint32_t pod) { return fact.ReservedFor(decision_->pods[pod].uid); });
}

bool GangRun::ConsumersDead(std::size_t claim) const {
  const auto& consumers = decision_->claims[claim].consumers;
  return std::all_of(consumers.begin(), consumers.end(),
                     [&](std::uint32_t pod) { return pods_[pod].dead; });
}

void GangRun::Fail(std::string reason) {
  if (failure_.empty()) failure_ = std::move(reason);
}

// Ends the pods that need the claim, or all.
void GangRun::FailClaim(std::size_t claim, std::string reason) {
  if (phase_ != RunPhase::kBound || !losses_.goes_on) return Fail(std::move(reason));
  for (const std::uint32_t pod : decision_->claims[claim].consumers) EndMember(pod);
}

void GangRun::Retry(Track& track, MonotonicTime now) {
  track.retry_at = now + RetryPolicy::PauseAfter(track.failures++);
}

// Returns whether a write may be issued; if it may only later, sets the time to wake up.
bool GangRun::Ready(const Track& track, MonotonicTime now) {
  if (track.in_flight != 0) return false;
  if (track.retry_at <= now) return true;
  WakeAt(track.retry_at);
  return false;
}

void GangRun::WakeAt(MonotonicTime when) {
  if (!wake_ || when < *wake_) wake_ = when;
}

void GangRun::IssueClaimWrite(std::size_t index, WriteKind kind) {
  ClaimTrack& track = claims_[index];
  // Without the state that it was made for, a write could undo what somebody else has done since.
  TAHOMA_CHECK(track.seen != nullptr || kind == WriteKind::kReadClaim);
  Issue(track, ClaimWrite{kind, run_, static_cast<std::uint32_t>(index), decision_, track.seen});
}

void GangRun::Issue(Track& track, Write what) {
  // The answer to a second write would be taken for the first's.
  TAHOMA_CHECK(track.in_flight == 0);
  track.in_flight = writes_->Add(std::move(what));
}

}  // namespace tahoma::controller

#include "controller/core/queue/scheduling_queue.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>

#include "controller/core/queue/neighbours.h"
#include "controller/core/queue/preemption.h"
#include "lib/base/check.h"

namespace tahoma::controller {
namespace {

GangReason ReasonOf(BlockedReason reason) {
  switch (reason) {
    case BlockedReason::kWaitsForCapacity:
      return GangReason::kWaitsForCapacity;
    case BlockedReason::kWaitsForRepair:
      return GangReason::kWaitsForRepair;
    case BlockedReason::kNeverFits:
      return GangReason::kNeverFits;
    case BlockedReason::kNotFound:
      return GangReason::kNotFound;
    case BlockedReason::kInvalid:
      return GangReason::kInvalid;
  }
  TAHOMA_CHECK(false);
  return GangReason::kNone;
}

bool AnyClaimOf(const GangSpec& gang, const absl::flat_hash_set<std::string>& taken) {
  return std::any_of(gang.members.begin(), gang.members.end(), [&](const MemberSpec& member) {
    return std::any_of(member.claims.begin(), member.claims.end(),
                       [&](const ClaimSpec& claim) { return taken.contains(claim.uid); });
  });
}

// What other pods keep from it comes back when they end.
void SayNarrowed(const std::string& why, Blocked& blocked) {
  blocked.message += "; " + why;
  if (blocked.reason == BlockedReason::kNeverFits) {
    blocked.reason = BlockedReason::kWaitsForCapacity;
  }
}

}  // namespace

ServicePlace PlaceOf(const GangRef& ref, const GangSpec& spec) {
  return {.in_no_block = spec.reservation.empty(),
          .behind = -std::int64_t{spec.priority},
          .preemptible = spec.preemptible,
          .created = spec.created,
          .gang = ref};
}

void SchedulingQueue::TouchAllWaiting() {
  for (const auto& [ref, gang] : waiting_) touched_.insert(ref);
}

std::set<GangRef> SchedulingQueue::DrainTouched(MonotonicTime now) {
  while (!backoff_ends_.empty() && backoff_ends_.begin()->first <= now) {
    const GangRef ref = backoff_ends_.begin()->second;
    backoff_ends_.erase(backoff_ends_.begin());
    backing_off_.erase(ref);
    touched_.insert(ref);
  }
  return std::exchange(touched_, {});
}

void SchedulingQueue::Put(const GangRef& ref, const Readiness& ready) {
  Deactivate(ref);
  WaitingGang& gang = waiting_[ref];
  if (gang.spec == nullptr || ready.spec == nullptr) {
    gang.reason = ready.reason;
    gang.message = ready.message;
  }
  gang.spec = ready.spec;
  gang.finished = ready.finished;
  gang.succeeded = ready.succeeded;
  if (gang.spec != nullptr && !backing_off_.contains(ref)) {
    active_.insert(PlaceOf(ref, *gang.spec));
  }
}

void SchedulingQueue::Remove(const GangRef& ref) {
  Deactivate(ref);
  waiting_.erase(ref);
}

void SchedulingQueue::Deactivate(const GangRef& ref) {
  blocked_.erase(ref);
  const WaitingGang* gang = Find(ref);
  if (gang != nullptr && gang->spec != nullptr) active_.erase(PlaceOf(ref, *gang->spec));
}

void SchedulingQueue::BackOff(const GangRef& ref, MonotonicTime now) {
  Deactivate(ref);
  const auto [found, added] = backing_off_.try_emplace(ref, now + kBackoff);
  if (!added) {
    backoff_ends_.erase({found->second, ref});
    found->second = now + kBackoff;
  }
  backoff_ends_.insert({found->second, ref});
}

void SchedulingQueue::OnCapacityFreed() {
  for (const GangRef& ref : blocked_) {
    const WaitingGang* gang = Find(ref);
    // A blocked gang that cannot be planned would wait for ever without a reason.
    TAHOMA_CHECK(gang != nullptr && gang->spec != nullptr);
    active_.insert(PlaceOf(ref, *gang->spec));
  }
  blocked_.clear();
}

SchedulingQueue::Batch SchedulingQueue::DrainActive(std::size_t most) {
  Batch batch;
  bool alone = false;
  while (!active_.empty() && batch.queue.size() < most && !alone) {
    const WaitingGang* gang = Find(active_.begin()->gang);
    TAHOMA_CHECK(gang != nullptr && gang->spec != nullptr);  // a gang that waits and is ready
    const ServicePlace& place = *active_.begin();
    alone = neighbours_ != nullptr && neighbours_->Matters(*gang->spec);
    if (batch.queue.empty()) batch.first = place;
    if (!batch.queue.empty() && (alone || batch.first.in_no_block != place.in_no_block ||
                                 KeptBefore(batch.first) != KeptBefore(place))) {
      break;
    }
    Narrowed narrowed{.gang = gang->spec, .why = {}};
    if (neighbours_ != nullptr) narrowed = neighbours_->Narrow(gang->spec);
    batch.queue.push_back(std::move(narrowed.gang));
    batch.narrowed.push_back(std::move(narrowed.why));
    active_.erase(active_.begin());
  }
  return batch;
}

std::size_t SchedulingQueue::KeptBefore(const ServicePlace& place) const {
  return preemption_ == nullptr ? 0 : preemption_->CountBefore(place);
}

std::vector<Planned> SchedulingQueue::Plan(const ClusterState& cluster, std::size_t most,
                                           WallTime now) {
  const auto [queue, first, narrowed] = DrainActive(std::min(most, kPlansMost));
  if (queue.empty()) return {};
  plans_ += queue.size();
  std::vector<Decision> decisions = KeptBefore(first) == 0
                                        ? plan_(cluster, queue, now)
                                        : plan_(preemption_->ViewOf(cluster, first), queue, now);
  // A gang without a decision would be neither active nor blocked, and never planned again.
  TAHOMA_CHECK(decisions.size() == queue.size());
  std::vector<Planned> all;
  absl::flat_hash_set<std::string> taken;  // claims given away by this call
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    Decision& decision = decisions[i];
    TAHOMA_CHECK(decision.gang == queue[i]);  // else a gang could have passed those before it
    TAHOMA_CHECK(decision.placement.has_value() != decision.blocked.has_value());
    const GangRef ref{decision.gang->key, decision.gang->single_pod};
    if (AnyClaimOf(*decision.gang, taken)) {
      Touch(ref);  // it is assessed again: it waits for that claim now
    } else if (decision.placement) {
      for (const MemberPlacement& member : decision.placement->members) {
        for (const ClaimPlacement& claim : member.claims) taken.insert(claim.uid);
      }
      Remove(ref);
      all.push_back({.gang = decision.drawn != nullptr ? decision.drawn : decision.gang,
                     .placement = std::move(decision.placement)});
    } else {
      if (!narrowed[i].empty()) SayNarrowed(narrowed[i], *decision.blocked);
      const bool news = Block(ref, *decision.blocked);
      all.push_back({.gang = decision.gang, .placement = std::nullopt, .news = news});
    }
  }
  return all;
}

// Records why the gang is blocked. Returns whether the reason is another than before.
bool SchedulingQueue::Block(const GangRef& ref, const Blocked& blocked) {
  const auto found = waiting_.find(ref);
  TAHOMA_CHECK(found != waiting_.end() && found->second.spec != nullptr);
  WaitingGang& gang = found->second;
  const bool news = gang.reason != ReasonOf(blocked.reason);
  gang.reason = ReasonOf(blocked.reason);
  gang.message = blocked.message;
  blocked_.insert(ref);
  return news;
}

const WaitingGang* SchedulingQueue::Find(const GangRef& ref) const {
  const auto found = waiting_.find(ref);
  return found == waiting_.end() ? nullptr : &found->second;
}

std::optional<MonotonicTime> SchedulingQueue::wake() const {
  if (backoff_ends_.empty()) return std::nullopt;
  return backoff_ends_.begin()->first;
}

}  // namespace tahoma::controller

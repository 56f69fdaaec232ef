#include "controller/core/writes/status_outbox.h"

#include <algorithm>

namespace tahoma::controller {
namespace {

// Sets the conditions' times: a condition keeps its time while its status stays.
void KeepTimes(const GangStatus* before, GangStatus& after, WallTime now) {
  for (GangCondition& condition : after.conditions) {
    condition.since = now;
    if (before == nullptr) continue;
    for (const GangCondition& old : before->conditions) {
      if (old.type == condition.type && old.status == condition.status) condition.since = old.since;
    }
  }
}

// Returns whether the write need not be sent again.
bool IsTaken(const ApiResult& result) {
  return result.outcome == WriteOutcome::kDone || result.outcome == WriteOutcome::kGone;
}

}  // namespace

void StatusOutbox::SetGang(const GangFact& gang, GangStatus status, const Now& now) {
  if (const auto found = gangs_.find(gang.key);
      found != gangs_.end() && found->second.uid != gang.uid) {
    ForgetGang(gang.key);  // another object has the name now
  }
  GangEntry& entry = gangs_[gang.key];
  entry.uid = gang.uid;
  KeepTimes(entry.wanted.get(), status, now.wall);
  if (entry.wanted != nullptr && *entry.wanted == status) return;
  const bool shown_to_wait = entry.sent == nullptr || entry.sent->phase == GangPhase::kPending;
  const bool waits = status.phase == GangPhase::kPending && shown_to_wait;
  entry.wanted = std::make_shared<const GangStatus>(std::move(status));
  MonotonicTime when = now.monotonic;
  if (waits) when += kGrace;
  if (waits && entry.told) when = std::max(when, *entry.told + kRepeat);
  gang_outbox_.AddAt(gang.key, when);
}

void StatusOutbox::SeeGang(const GangFact& gang, const Now& now) {
  const auto found = gangs_.find(gang.key);
  if (found == gangs_.end() || found->second.uid != gang.uid) return;
  GangEntry& entry = found->second;
  const bool others_wrote = entry.shown.OnSeen(gang.resource_version, gang.shown);
  if (!others_wrote || gang_outbox_.IsInFlight(gang.key)) return;
  entry.written = nullptr;
  gang_outbox_.AddAt(gang.key, std::max(now.monotonic, *entry.told + kRepeat));
}

void StatusOutbox::ForgetGang(const GangKey& gang) {
  gang_outbox_.Forget(gang);
  gangs_.erase(gang);
}

std::shared_ptr<const GangStatus> StatusOutbox::GangStatusOf(const GangFact& gang) const {
  const auto found = gangs_.find(gang.key);
  return found == gangs_.end() || found->second.uid != gang.uid ? nullptr : found->second.wanted;
}

void StatusOutbox::SetPod(const PodFact& pod, const std::string& message, const Now& now) {
  const auto found = pods_.find(pod.key);
  const bool is_new = found == pods_.end() || found->second.uid != pod.uid;
  if (message.empty() || is_new) ForgetPod(pod.key);
  if (message.empty()) return;
  PodEntry& entry = pods_[pod.key];
  if (is_new) {
    entry.uid = pod.uid;
    entry.written = pod.unschedulable_message;
    entry.since = now.wall;
  }
  if (entry.wanted == message) return;
  entry.wanted = message;
  MonotonicTime when = now.monotonic + kGrace;
  if (entry.told) when = std::max(when, *entry.told + kRepeat);
  pod_outbox_.AddAt(pod.key, when);
}

void StatusOutbox::ForgetPod(const PodKey& pod) {
  if (pods_.erase(pod) != 0) pod_outbox_.Forget(pod);
}

void StatusOutbox::Tell(EventNote event) { events_.push_back(std::move(event)); }

void StatusOutbox::OnResult(const ApiResult& result, const Now& now) {
  if (result.kind == WriteKind::kGangStatus) OnGangResult(result, now);
  if (result.kind == WriteKind::kPodCondition) OnPodResult(result, now);
}

void StatusOutbox::OnGangResult(const ApiResult& result, const Now& now) {
  const GangKey key{result.ns, result.name};
  if (!gang_outbox_.OnAnswer(key, result.attempt)) return;
  if (!IsTaken(result)) return gang_outbox_.OnFailure(key, now.monotonic);
  gang_outbox_.OnDone(key);
  GangEntry& entry = gangs_.at(key);
  entry.written = entry.sent;
  const bool others_wrote = result.outcome == WriteOutcome::kDone &&
                            entry.shown.OnWritten(result.resource_version, result.shown);
  if (!others_wrote) return;
  entry.written = nullptr;
  gang_outbox_.Add(key);
}

void StatusOutbox::OnPodResult(const ApiResult& result, const Now& now) {
  const PodKey key{result.ns, result.name};
  if (!pod_outbox_.OnAnswer(key, result.attempt)) return;
  if (!IsTaken(result)) return pod_outbox_.OnFailure(key, now.monotonic);
  pod_outbox_.OnDone(key);
  PodEntry& entry = pods_.at(key);
  entry.written = entry.sent;
}

void StatusOutbox::Flush(const Now& now) {
  for (const GangKey& key : gang_outbox_.DrainDue(now.monotonic)) FlushGang(key, now);
  for (const PodKey& key : pod_outbox_.DrainDue(now.monotonic)) FlushPod(key, now);
  for (EventNote& event : events_) writes_.Add(std::move(event));
  events_.clear();
}

void StatusOutbox::FlushGang(const GangKey& key, const Now& now) {
  const auto found = gangs_.find(key);
  if (found == gangs_.end()) return;
  GangEntry& entry = found->second;
  if (entry.written != nullptr && *entry.written == *entry.wanted) return;
  entry.sent = entry.wanted;
  entry.told = now.monotonic;
  gang_outbox_.NoteSent(key, writes_.Add(GangStatusWrite{key, entry.uid, entry.wanted}));
}

void StatusOutbox::FlushPod(const PodKey& key, const Now& now) {
  const auto found = pods_.find(key);
  if (found == pods_.end() || found->second.written == found->second.wanted) return;
  PodEntry& entry = found->second;
  entry.sent = entry.wanted;
  entry.told = now.monotonic;
  pod_outbox_.NoteSent(key,
                       writes_.Add(PodConditionWrite{key, entry.uid, entry.wanted, entry.since}));
  Tell({.ns = key.ns,
        .name = key.name,
        .uid = entry.uid,
        .warning = true,
        .reason = ToString(EventReason::kFailedScheduling),
        .message = entry.wanted,
        .when = now.wall});
}

std::optional<MonotonicTime> StatusOutbox::wake(const Now& now) const {
  const auto gang = gang_outbox_.wake(now.monotonic);
  const auto pod = pod_outbox_.wake(now.monotonic);
  return gang && pod ? std::min(gang, pod) : std::max(gang, pod);  // nullopt is the least
}

}  // namespace tahoma::controller

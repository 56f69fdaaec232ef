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

}  // namespace

void StatusOutbox::SetGang(const GangFact& gang, GangStatus status, const Now& now) {
  GangEntry& entry = gangs_[gang.key];
  if (entry.uid != gang.uid) {
    if (entry.scheduled) due_.erase({entry.due, {true, gang.key}});
    entry = GangEntry{};
    entry.uid = gang.uid;
  }
  KeepTimes(entry.wanted.get(), status, now.wall);
  if (entry.wanted != nullptr && *entry.wanted == status) return;
  const bool waits = status.phase == GangPhase::kPending;
  entry.wanted = std::make_shared<const GangStatus>(std::move(status));
  MonotonicTime when = now.monotonic;
  if (waits) when += kGrace;
  if (waits && entry.told) when = std::max(when, *entry.told + kRepeat);
  Schedule(entry, true, gang.key, when);
}

void StatusOutbox::SeeGang(const GangFact& gang, const Now& now) {
  const auto found = gangs_.find(gang.key);
  if (found == gangs_.end() || found->second.uid != gang.uid) return;
  GangEntry& entry = found->second;
  if (!entry.shown.OnSeen(gang.resource_version, gang.shown) || entry.in_flight != 0) return;
  entry.written = nullptr;
  Schedule(entry, true, gang.key, std::max(now.monotonic, *entry.told + kRepeat));
}

void StatusOutbox::ForgetGang(const GangKey& gang) {
  const auto found = gangs_.find(gang);
  if (found == gangs_.end()) return;
  if (found->second.scheduled) due_.erase({found->second.due, {true, gang}});
  gangs_.erase(found);
}

std::shared_ptr<const GangStatus> StatusOutbox::GangStatusOf(const GangKey& gang) const {
  const auto found = gangs_.find(gang);
  return found == gangs_.end() ? nullptr : found->second.wanted;
}

void StatusOutbox::SetPod(const PodFact& pod, const std::string& message, const Now& now) {
  const GangKey key{pod.key.ns, pod.key.name};
  if (message.empty()) {
    ForgetPod(pod.key);
    return;
  }
  PodEntry& entry = pods_[key];
  if (entry.uid != pod.uid) {
    if (entry.scheduled) due_.erase({entry.due, {false, key}});
    entry = PodEntry{};
    entry.uid = pod.uid;
    entry.written = pod.unschedulable_message;
    entry.since = now.wall;
  }
  if (entry.wanted == message) return;
  entry.wanted = message;
  MonotonicTime when = now.monotonic + kGrace;
  if (entry.told) when = std::max(when, *entry.told + kRepeat);
  Schedule(entry, false, key, when);
}

void StatusOutbox::ForgetPod(const PodKey& pod) {
  const GangKey key{pod.ns, pod.name};
  const auto found = pods_.find(key);
  if (found == pods_.end()) return;
  if (found->second.scheduled) due_.erase({found->second.due, {false, key}});
  pods_.erase(found);
}

void StatusOutbox::Tell(EventNote event) { events_.push_back(std::move(event)); }

void StatusOutbox::OnResult(const ApiResult& result, const Now& now) {
  const GangKey key{result.ns, result.name};
  const bool taken = result.outcome == WriteOutcome::kDone || result.outcome == WriteOutcome::kGone;
  if (result.kind == WriteKind::kGangStatus) {
    const auto found = gangs_.find(key);
    if (found == gangs_.end() || found->second.in_flight != result.attempt) return;
    GangEntry& entry = found->second;
    entry.in_flight = 0;
    if (taken) entry.written = entry.sent;
    if (result.outcome == WriteOutcome::kDone &&
        entry.shown.OnWritten(result.resource_version, result.shown)) {
      entry.written = nullptr;
    }
    if (!entry.scheduled && (entry.written == nullptr || *entry.written != *entry.wanted)) {
      Schedule(entry, true, key, taken ? now.monotonic : now.monotonic + kRetry);
    }
  } else if (result.kind == WriteKind::kPodCondition) {
    const auto found = pods_.find(key);
    if (found == pods_.end() || found->second.in_flight != result.attempt) return;
    PodEntry& entry = found->second;
    entry.in_flight = 0;
    if (taken) entry.written = entry.sent;
    if (!entry.scheduled && entry.written != entry.wanted) {
      Schedule(entry, false, key, taken ? now.monotonic : now.monotonic + kRetry);
    }
  }
}

void StatusOutbox::Flush(const Now& now) {
  while (!due_.empty() && due_.begin()->first <= now.monotonic) {
    const auto [about_gang, key] = due_.begin()->second;
    due_.erase(due_.begin());
    if (about_gang) {
      FlushGang(key, gangs_.at(key), now);
    } else {
      FlushPod(key, pods_.at(key), now);
    }
  }
  for (EventNote& event : events_) writes_.Add(std::move(event));
  events_.clear();
}

void StatusOutbox::FlushGang(const GangKey& key, GangEntry& entry, const Now& now) {
  entry.scheduled = false;
  if (entry.in_flight != 0) return;  // its result schedules the next write
  if (entry.written != nullptr && *entry.written == *entry.wanted) return;
  entry.sent = entry.wanted;
  entry.told = now.monotonic;
  entry.in_flight = writes_.Add(GangStatusWrite{key, entry.uid, entry.wanted});
}

void StatusOutbox::FlushPod(const GangKey& key, PodEntry& entry, const Now& now) {
  entry.scheduled = false;
  if (entry.in_flight != 0 || entry.written == entry.wanted) return;
  entry.sent = entry.wanted;
  entry.told = now.monotonic;
  entry.in_flight =
      writes_.Add(PodConditionWrite{{key.ns, key.name}, entry.uid, entry.wanted, entry.since});
  Tell({.ns = key.ns,
        .name = key.name,
        .uid = entry.uid,
        .warning = true,
        .reason = ToString(EventReason::kFailedScheduling),
        .message = entry.wanted,
        .when = now.wall});
}

std::optional<MonotonicTime> StatusOutbox::wake() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

void StatusOutbox::Schedule(Entry& entry, bool gang, const GangKey& key, MonotonicTime when) {
  if (entry.scheduled) {
    if (entry.due <= when) return;  // the earlier write will carry the newest
    due_.erase({entry.due, {gang, key}});
  }
  entry.due = when;
  entry.scheduled = true;
  due_.insert({when, {gang, key}});
}

}  // namespace tahoma::controller

#include "controller/core/writes/queue_statuses.h"

#include <algorithm>
#include <utility>

namespace tahoma::controller {
namespace {

WallTime SinceOf(bool holds, const std::optional<QueueCondition>& before, WallTime now) {
  if (before && before->holds == holds) return before->since;
  return std::chrono::floor<std::chrono::seconds>(now);
}

}  // namespace

void QueueStatuses::OnQueue(const QueueSpec& queue, const QueueShown& shown, const Now& now) {
  if (const auto found = entries_.find(queue.name);
      found != entries_.end() && found->second.uid != queue.uid) {
    OnQueueGone(queue.name, found->second.uid);  // it was deleted and made again between two looks
  }
  Entry& entry = entries_[queue.name];
  entry.uid = queue.uid;
  entry.seen = shown;
  const bool others_wrote = entry.shown.OnSeen(shown.resource_version, shown.digest);
  if (!others_wrote || outbox_.IsInFlight(queue.name)) return;
  entry.written = nullptr;
  outbox_.AddAt(queue.name, std::max(now.monotonic, *entry.told + kRepeat));
}

void QueueStatuses::OnQueueGone(const std::string& name, const std::string& uid) {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.uid != uid) return;
  entries_.erase(found);
  outbox_.Forget(name);
}

void QueueStatuses::Show(const QueueView& view, const Now& now) {
  if (view.spec == nullptr) return;
  const auto found = entries_.find(view.name);
  if (found == entries_.end() || found->second.uid != view.spec->uid) return;
  Entry& entry = found->second;
  QueueStatus status = StatusOf(view);
  if (entry.wanted != nullptr && Says(*entry.wanted, status)) return;
  std::optional<QueueCondition> ready = entry.seen.ready, stopped = entry.seen.stopped;
  if (entry.wanted != nullptr) {
    ready = {entry.wanted->trouble == QueueTrouble::kNone, entry.wanted->ready_since};
    stopped = {entry.wanted->stop != QueueStop::kNo, entry.wanted->stopped_since};
  }
  status.ready_since = SinceOf(status.trouble == QueueTrouble::kNone, ready, now.wall);
  status.stopped_since = SinceOf(status.stop != QueueStop::kNo, stopped, now.wall);
  const bool past_only = entry.wanted != nullptr && SaysButForPast(*entry.wanted, status);
  entry.wanted = std::make_shared<const QueueStatus>(std::move(status));
  MonotonicTime when = now.monotonic;
  if (entry.told) when = std::max(when, *entry.told + (past_only ? kPastRepeat : kRepeat));
  outbox_.AddAt(view.name, when);
}

void QueueStatuses::OnResult(const ApiResult& result, const Now& now) {
  const std::string& name = result.name;
  if (!outbox_.OnAnswer(name, result.attempt)) return;
  Entry& entry = entries_.at(name);
  const bool taken = result.outcome == WriteOutcome::kDone || result.outcome == WriteOutcome::kGone;
  if (!taken) {
    entry.written = nullptr;  // a write without an answer may have been carried out
    return outbox_.OnFailure(name, now.monotonic);
  }
  outbox_.OnDone(name);
  entry.written = entry.sent;
  const bool others_wrote = result.outcome == WriteOutcome::kDone &&
                            entry.shown.OnWritten(result.resource_version, result.shown);
  if (!others_wrote) return;
  entry.written = nullptr;
  outbox_.AddAt(name, std::max(now.monotonic, *entry.told + kRepeat));
}

void QueueStatuses::Flush(const Now& now) {
  for (const std::string& name : outbox_.DrainDue(now.monotonic)) Send(name, now);
}

void QueueStatuses::Send(const std::string& name, const Now& now) {
  Entry& entry = entries_.at(name);
  if (entry.wanted == nullptr) return;
  if (entry.written != nullptr && Says(*entry.written, *entry.wanted)) return;
  entry.sent = entry.wanted;
  entry.told = now.monotonic;
  outbox_.NoteSent(name, writes_.Add(QueueStatusWrite{.name = name,
                                                      .uid = entry.uid,
                                                      .base_version = entry.seen.resource_version,
                                                      .shown = entry.seen.digest,
                                                      .status = entry.sent}));
}

}  // namespace tahoma::controller

#include "controller/core/writes/queue_calendar_statuses.h"

#include <algorithm>
#include <utility>

namespace tahoma::controller {

void QueueCalendarStatuses::OnCalendar(const QueueCalendarSpec& calendar, const QueueShown& shown,
                                       const Now& now) {
  if (const auto found = entries_.find(calendar.name);
      found != entries_.end() && found->second.uid != calendar.uid) {
    OnCalendarGone(calendar.name, found->second.uid);  // it was deleted and made again
  }
  Entry& entry = entries_[calendar.name];
  entry.uid = calendar.uid;
  entry.seen = shown;
  const bool others_wrote = entry.shown.OnSeen(shown.resource_version, shown.digest);
  if (!others_wrote || outbox_.IsInFlight(calendar.name)) return;
  entry.written = nullptr;
  AddAfterPause(calendar.name, entry, now);
}

void QueueCalendarStatuses::OnCalendarGone(const std::string& name, const std::string& uid) {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.uid != uid) return;
  entries_.erase(found);
  outbox_.Forget(name);
}

void QueueCalendarStatuses::AddAfterPause(const std::string& name, const Entry& entry,
                                          const Now& now) {
  MonotonicTime when = now.monotonic;
  if (entry.told) when = std::max(when, *entry.told + kRepeat);
  outbox_.AddAt(name, when);
}

void QueueCalendarStatuses::Show(const std::string& name, QueueCalendarStatus status,
                                 const Now& now) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (entry.wanted != nullptr && Says(*entry.wanted, status)) return;
  const bool ready = status.trouble == CalendarTrouble::kNone;
  std::optional<QueueCondition> before = entry.seen.ready;
  if (entry.wanted != nullptr) {
    before = {entry.wanted->trouble == CalendarTrouble::kNone, entry.wanted->ready_since};
  }
  status.ready_since = before && before->holds == ready
                           ? before->since
                           : std::chrono::floor<std::chrono::seconds>(now.wall);
  entry.wanted = std::make_shared<const QueueCalendarStatus>(std::move(status));
  AddAfterPause(name, entry, now);
}

void QueueCalendarStatuses::OnResult(const ApiResult& result, const Now& now) {
  const std::string& name = result.name;
  if (!outbox_.OnAnswer(name, result.attempt)) return;
  Entry& entry = entries_.at(name);
  if (result.outcome != WriteOutcome::kDone && result.outcome != WriteOutcome::kGone) {
    entry.written = nullptr;  // a write without an answer may have been carried out
    return outbox_.OnFailure(name, now.monotonic);
  }
  outbox_.OnDone(name);
  entry.written = entry.sent;
  const bool others_wrote = result.outcome == WriteOutcome::kDone &&
                            entry.shown.OnWritten(result.resource_version, result.shown);
  if (!others_wrote) return;
  entry.written = nullptr;
  AddAfterPause(name, entry, now);
}

void QueueCalendarStatuses::Flush(const Now& now) {
  for (const std::string& name : outbox_.DrainDue(now.monotonic)) {
    Entry& entry = entries_.at(name);
    if (entry.wanted == nullptr) continue;
    if (entry.written != nullptr && Says(*entry.written, *entry.wanted)) continue;
    entry.sent = entry.wanted;
    entry.told = now.monotonic;
    outbox_.NoteSent(
        name, writes_.Add(QueueCalendarStatusWrite{.name = name,
                                                   .uid = entry.uid,
                                                   .base_version = entry.seen.resource_version,
                                                   .shown = entry.seen.digest,
                                                   .status = entry.sent}));
  }
}

}  // namespace tahoma::controller

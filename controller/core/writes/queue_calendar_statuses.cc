#include "controller/core/writes/queue_calendar_statuses.h"

#include <utility>

#include "controller/core/writes/condition_time.h"

namespace tahoma::controller {

void QueueCalendarStatuses::Show(const std::string& name, QueueCalendarStatus status,
                                 const Now& now) {
  const auto* entry = statuses_.Find(name);
  if (entry == nullptr) return;
  const QueueCalendarStatus* wanted = entry->wanted.get();
  if (wanted != nullptr && Says(*wanted, status)) return;
  const bool ready = status.trouble == CalendarTrouble::kNone;
  std::optional<QueueCondition> before = entry->seen.ready;
  if (wanted != nullptr) {
    before = {wanted->trouble == CalendarTrouble::kNone, wanted->ready_since};
  }
  status.ready_since = SinceOf(ready, before, now.wall);
  statuses_.Want(name, std::move(status), decltype(statuses_)::kRepeat, now);
}

void QueueCalendarStatuses::Flush(const Now& now) {
  statuses_.Flush(now, [this](const std::string& name, const auto& entry) {
    return writes_.Add(QueueCalendarStatusWrite{.name = name,
                                                .uid = entry.uid,
                                                .base_version = entry.seen.resource_version,
                                                .shown = entry.seen.digest,
                                                .status = entry.sent});
  });
}

}  // namespace tahoma::controller

// Keeps the status of QueueCalendars in the API: which periods are in force, and what is wrong.
//
//   QueueCalendarStatuses statuses(writes);
//   statuses.OnCalendar(*spec, shown, now);       // a watch saw the object
//   statuses.Show(name, status, now);             // as often as one likes
//   statuses.Flush(now);                          // writes only what changed
//   statuses.OnResult(result, now);
//
// A status is written when it has changed since the last write, or when somebody else has changed
// the object's status, at most once in kRepeat. A failed write is sent again (outbox.h).
//
// Scope: the times of writes. The statuses come from queue/calendar_keeper.h.
//
// Thread safety: belongs to one thread.

#pragma once

#include <optional>
#include <string>

#include "controller/core/facts/queue_calendar_object.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/object_statuses.h"
#include "controller/core/writes/write_buffer.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class QueueCalendarStatuses {
 public:
  // `writes` must outlive it.
  explicit QueueCalendarStatuses(WriteBuffer& writes) : writes_(writes) {}

  void OnCalendar(const QueueCalendarSpec& calendar, const QueueShown& shown, const Now& now) {
    statuses_.OnObject(calendar.name, calendar.uid, shown, now);
  }
  void OnCalendarGone(const std::string& name, const std::string& uid) {
    statuses_.OnGone(name, uid);
  }
  // Takes the status, without the time of the condition. A calendar that is gone is left out.
  void Show(const std::string& name, QueueCalendarStatus status, const Now& now);

  void OnResult(const ApiResult& result, const Now& now) { statuses_.OnResult(result, now); }
  void Flush(const Now& now);
  // The time at which Flush has something to do without any news.
  std::optional<MonotonicTime> wake(const Now& now) const { return statuses_.wake(now); }

 private:
  WriteBuffer& writes_;
  ObjectStatuses<QueueCalendarStatus, QueueShown> statuses_;
};

}  // namespace tahoma::controller

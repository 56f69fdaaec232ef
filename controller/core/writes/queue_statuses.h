// Keeps the status of Queues in the API: what each queue holds, who waits there, and what is wrong.
//
//   QueueStatuses statuses(writes);
//   statuses.OnQueue(*spec, shown, now);          // a watch saw the object
//   statuses.Show(view, now);                     // as often as one likes
//   statuses.Flush(now);                          // writes only what changed, when it is time
//   statuses.OnResult(result, now);
//
// A status is written when a field has changed since the last write, or when somebody else has
// changed the object's status. A queue's status is written at most once in kRepeat, and at most
// once in kPastRepeat where only the use of the past has changed: past use decays all the time. A
// failed write is sent again (object_statuses.h).
//
// Scope: the times of writes. The views come from core/queue.
//
// Thread safety: belongs to one thread.

#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "controller/core/facts/queue_object.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/object_statuses.h"
#include "controller/core/writes/write_buffer.h"
#include "controller/share/queue_spec.h"
#include "controller/share/queue_view.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class QueueStatuses {
  using Statuses = ObjectStatuses<QueueStatus, QueueShown>;

 public:
  static constexpr std::chrono::seconds kRepeat = Statuses::kRepeat;
  static constexpr std::chrono::seconds kPastRepeat{60};

  // `writes` must outlive it.
  explicit QueueStatuses(WriteBuffer& writes) : writes_(writes) {}

  void OnQueue(const QueueSpec& queue, const QueueShown& shown, const Now& now);
  void OnQueueGone(const std::string& name, const std::string& uid);
  // Takes the view of a queue. One without an object, or of an object that is gone, is left out.
  void Show(const QueueView& view, const Now& now);

  void OnResult(const ApiResult& result, const Now& now);
  void Flush(const Now& now);
  // The time at which Flush has something to do without any news.
  std::optional<MonotonicTime> wake(const Now& now) const { return statuses_.wake(now); }

 private:
  WriteBuffer& writes_;
  Statuses statuses_;
};

}  // namespace tahoma::controller

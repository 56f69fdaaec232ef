#include "controller/core/writes/queue_statuses.h"

#include <utility>

#include "controller/core/writes/condition_time.h"

namespace tahoma::controller {

void QueueStatuses::OnQueue(const QueueSpec& queue, const QueueShown& shown, const Now& now) {
  statuses_.OnObject(queue.name, queue.uid, shown, now);
}

void QueueStatuses::OnQueueGone(const std::string& name, const std::string& uid) {
  statuses_.OnGone(name, uid);
}

void QueueStatuses::Show(const QueueView& view, const Now& now) {
  if (view.spec == nullptr) return;
  const auto* entry = statuses_.Find(view.name, view.spec->uid);
  if (entry == nullptr) return;
  QueueStatus status = StatusOf(view);
  const QueueStatus* wanted = entry->wanted.get();
  if (wanted != nullptr && Says(*wanted, status)) return;
  QueueShown before = entry->seen;
  if (wanted != nullptr) {
    before.ready = {wanted->trouble == QueueTrouble::kNone, wanted->ready_since};
    before.stopped = {wanted->stop != QueueStop::kNo, wanted->stopped_since};
  }
  status.ready_since = SinceOf(status.trouble == QueueTrouble::kNone, before.ready, now.wall);
  status.stopped_since = SinceOf(status.stop != QueueStop::kNo, before.stopped, now.wall);
  const bool past_only = wanted != nullptr && SaysButForPast(*wanted, status);
  statuses_.Want(view.name, std::move(status), past_only ? kPastRepeat : kRepeat, now);
}

void QueueStatuses::OnResult(const ApiResult& result, const Now& now) {
  statuses_.OnResult(result, now);
}

void QueueStatuses::Flush(const Now& now) {
  statuses_.Flush(now, [this](const std::string& name, const auto& entry) {
    return writes_.Add(QueueStatusWrite{.name = name,
                                        .uid = entry.uid,
                                        .base_version = entry.seen.resource_version,
                                        .shown = entry.seen.digest,
                                        .status = entry.sent});
  });
}

}  // namespace tahoma::controller

#include "controller/core/writes/window_statuses.h"

#include <utility>

#include "controller/core/writes/condition_time.h"

namespace tahoma::controller {

void WindowStatuses::Show(const WindowSpec& window, WindowStatus status, const Now& now) {
  const auto* entry = statuses_.Find(window.name, window.uid);
  if (entry == nullptr) return;
  const WindowStatus* wanted = entry->wanted.get();
  if (wanted != nullptr && Says(*wanted, status)) return;
  WindowShown before = entry->seen;
  if (wanted != nullptr) {
    before.ready = {wanted->ready(), wanted->ready_since};
    before.drained = {wanted->drained(), wanted->drained_since};
  }
  status.ready_since = SinceOf(status.ready(), before.ready, now.wall);
  status.drained_since = SinceOf(status.drained(), before.drained, now.wall);
  statuses_.Want(window.name, std::move(status), decltype(statuses_)::kRepeat, now);
}

void WindowStatuses::Flush(const Now& now) {
  statuses_.Flush(now, [this](const std::string& name, const auto& entry) {
    return writes_.Add(WindowStatusWrite{.name = name,
                                         .uid = entry.uid,
                                         .base_version = entry.seen.resource_version,
                                         .shown = entry.seen.digest,
                                         .status = entry.sent});
  });
}

}  // namespace tahoma::controller

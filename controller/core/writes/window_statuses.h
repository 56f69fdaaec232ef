// Keeps the status of MaintenanceWindows in the API: the phase, the gangs still there, missing
// hardware.
//
//   WindowStatuses statuses(writes);
//   statuses.OnWindow(*spec, shown, now);         // a watch saw the object
//   statuses.Show(*spec, status, now);            // at any time
//   statuses.Flush(now);                          // writes changed statuses when due
//   statuses.OnResult(result, now);
//
// Scope: the times of conditions. The times of writes: object_statuses.h. The contents:
// core/queue/windows.h.
//
// Thread safety: belongs to one thread.

#pragma once

#include <optional>
#include <string>

#include "controller/core/facts/window_object.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/object_statuses.h"
#include "controller/core/writes/write_buffer.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class WindowStatuses {
 public:
  // `writes` must outlive it.
  explicit WindowStatuses(WriteBuffer& writes) : writes_(writes) {}

  void OnWindow(const WindowSpec& window, const WindowShown& shown, const Now& now) {
    statuses_.OnObject(window.name, window.uid, shown, now);
  }
  void OnWindowGone(const std::string& name, const std::string& uid) {
    statuses_.OnGone(name, uid);
  }
  // A window that is gone is left out.
  void Show(const WindowSpec& window, WindowStatus status, const Now& now);

  void OnResult(const ApiResult& result, const Now& now) { statuses_.OnResult(result, now); }
  void Flush(const Now& now);
  // The time at which Flush has something to do without any news.
  std::optional<MonotonicTime> wake(const Now& now) const { return statuses_.wake(now); }

 private:
  WriteBuffer& writes_;
  ObjectStatuses<WindowStatus, WindowShown> statuses_;
};

}  // namespace tahoma::controller

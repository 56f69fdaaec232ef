// Makes the driver's calls in sequence on a thread of its own: a caller may stop waiting before its
// call ends.
//
// A kubelet waits 45 s for an answer, and after a failure a minute and more before the next call
// (docs/reference/kubernetes-dra.md#prepare-and-unprepare). Run answers in time, however long an
// API server, a disk or a sim-node takes. A longer call goes on, and the kubelet's next call finds
// the result.
//
// Thread safety: every member may be called from any thread. Calls hold the lock between processes.

#pragma once

#include <absl/status/status.h>

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "dra-plugin/kubelet/call_lock.h"
#include "lib/base/mutex.h"

namespace tahoma::dra {

class CallQueue {
 public:
  // Everything that the call refers to must live as long as the queue, not only as long as Run.
  using Call = std::function<absl::Status()>;

  // `lock` must outlive the queue.
  explicit CallQueue(CallLock& lock);
  // Waits for the running call; later calls are dropped.
  ~CallQueue();

  // Makes the call after all earlier calls and returns its status. kDeadlineExceeded at the
  // deadline; after the deadline the call is not made.
  absl::Status Run(Call call, CondVar::Deadline deadline);

  // Waits until then; false as soon as EndPauses was called.
  bool Pause(CondVar::Deadline until);
  void EndPauses();

 private:
  struct Entry {
    Call call;
    bool abandoned = false;  // the caller has stopped waiting
    bool done = false;
    absl::Status status = {};
  };

  void Work();

  CallLock& lock_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::shared_ptr<Entry>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool no_pauses_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tahoma::dra

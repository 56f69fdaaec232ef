// The driver's calls, one after the other in a thread of their own, so that whoever asked for one
// need not wait for its end.
//
// A kubelet waits 45 s for an answer, and after a failure a minute and more before it asks again
// (docs/reference/kubernetes-dra.md#prepare-and-unprepare). Hence Run answers in time whatever an
// API server, a disk or a sim-node does; a call that takes longer goes on, and the kubelet's next
// one finds what it has done.
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
  // What it refers to must live as long as the queue, not only as long as Run.
  using Call = std::function<absl::Status()>;

  // `lock` must outlive the queue.
  explicit CallQueue(CallLock& lock);
  // Waits for the call that runs; those after it are not made.
  ~CallQueue();

  // Makes the call after those before it and returns its status. kDeadlineExceeded at the deadline;
  // when it has passed already, the call is not made.
  absl::Status Run(Call call, CondVar::Deadline deadline);

  // Waits until then; false as soon as EndPauses was called.
  bool Pause(CondVar::Deadline until);
  void EndPauses();

 private:
  struct Entry {
    Call call;
    bool abandoned = false;  // nobody waits for it any more
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

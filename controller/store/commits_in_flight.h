// Commits that a caller has started without waiting for the disk.
//
//   CommitsInFlight flight;
//   flight.Start();
//   store.CommitAsync(batch, [&](const absl::Status& status) { flight.Answer(status); });
//   …                                            // further commits
//   TAHOMA_RETURN_IF_ERROR(flight.Land());       // all are on disk
//
// Thread safety: one thread calls Start and Land, any thread Answer.

#pragma once

#include <absl/status/status.h>

#include "lib/base/mutex.h"

namespace tahoma::controller {

class CommitsInFlight {
 public:
  CommitsInFlight() = default;
  ~CommitsInFlight() { Land().IgnoreError(); }
  CommitsInFlight(const CommitsInFlight&) = delete;
  CommitsInFlight& operator=(const CommitsInFlight&) = delete;

  // Counts one commit as sent; exactly one Answer follows.
  void Start();
  void Answer(const absl::Status& status);

  // Waits until all are answered. Returns the first failure since the beginning.
  absl::Status Land();

 private:
  Mutex mutex_;
  CondVar answered_;
  int unanswered_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::controller

// Waits, passed in.
//
//   if (!sleeper.Sleep(std::chrono::seconds(1))) return;     // the program ends
//
// Thread safety: every member may be called from any thread.

#pragma once

#include <chrono>

#include "lib/base/mutex.h"

namespace tahoma::kube {

class Sleeper {
 public:
  virtual ~Sleeper() = default;
  // Returns false when the wait was interrupted, now or earlier.
  virtual bool Sleep(std::chrono::nanoseconds duration) = 0;
};

// Waits in real time, until Interrupt.
class InterruptibleSleeper final : public Sleeper {
 public:
  bool Sleep(std::chrono::nanoseconds duration) override {
    const auto deadline = CondVar::In(duration);
    const MutexLock lock(mutex_);
    while (!interrupted_ && changed_.WaitUntil(mutex_, deadline)) {
    }
    return !interrupted_;
  }
  // Ends all waits, present and future.
  void Interrupt() {
    {
      const MutexLock lock(mutex_);
      interrupted_ = true;
    }
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tahoma::kube

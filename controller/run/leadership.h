// Leader election: waits for the Lease, renews it, and reports its loss.
//
//   Leadership leadership(
//       transport, clock, {.ns = "tahoma", .name = "controller", .identity = identity}, log);
//   while (!leadership.Wait(200ms)) {                 // stand-by until we lead
//     if (signalled) return;
//   }
//   while (leadership.leading()) …
//
// `leading` reads the clock each time: a process that was stopped and continues leads no more, even
// before it sees the loss of its lease.
//
// Thread safety: Wait from one thread; leading from any.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/kube/client.h"
#include "lib/kube/lease.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

class Leadership {
 public:
  // Transport and clock must outlive the Leadership. Calls `history_lost`, from a thread of the
  // Leadership, when the API turns out to be restored from a backup (lib/kube/lease.h).
  Leadership(kube::Transport& transport, const Clock& clock, kube::LeaderElectionOptions options,
             std::function<void(const std::string& line)> log,
             std::function<void()> history_lost = nullptr);
  // Gives the Lease up: a stand-by need not wait for the Lease's end.
  ~Leadership();

  // Waits at most `timeout`; returns whether we lead.
  bool Wait(std::chrono::milliseconds timeout);
  // The number of the leadership; 0 before the first.
  std::int64_t term() const { return term_.load(); }
  bool leading() const { return clock_.MonotonicNow() < leads_until_.load(); }
  // Returns whether a former leader must end. A former leader may go on while it only rewrites a
  // lease that nobody holds, after its API was restored from a backup.
  bool lost() const { return !leading() && !regaining_.load(); }

 private:
  void Run();
  void Act(const kube::LeaderElection::Step& step);

  const Clock& clock_;
  const std::string ns_;
  const std::string name_;
  const std::function<void(const std::string&)> log_;
  const std::function<void()> history_lost_;
  kube::InterruptibleSleeper sleeper_;
  kube::Client client_;
  kube::LeaderElection election_;
  std::atomic<MonotonicTime> leads_until_ = MonotonicTime::min();
  std::atomic<bool> regaining_ = false;
  std::atomic<std::int64_t> term_ = 0;
  Mutex mutex_;
  CondVar changed_;
  bool led_ ABSL_GUARDED_BY(mutex_) = false;  // as logged
  std::thread thread_;
};

}  // namespace tahoma::controller

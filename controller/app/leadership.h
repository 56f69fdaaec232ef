// Being the one controller that acts: waits for the Lease, renews it, and says when it is lost.
//
//   Leadership leadership(transport, clock, {.ns = "tahoma-system", …});
//   if (!leadership.Wait(stop)) return;               // stand-by until we lead
//   while (leadership.leading()) …
//
// Thread safety: Wait from one thread; leading from any.

#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "lib/base/clock.h"
#include "lib/kube/client.h"
#include "lib/kube/lease.h"
#include "lib/kube/sleeper.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

class Leadership {
 public:
  // Both must outlive it.
  Leadership(kube::Transport& transport, const Clock& clock, kube::LeaderElectionOptions options,
             std::function<void(const std::string& line)> log);
  // Gives the Lease up, so that a stand-by need not wait for its end.
  ~Leadership();

  // Waits at most `timeout`; whether we lead.
  bool Wait(std::chrono::milliseconds timeout);
  bool leading() const { return leading_; }

 private:
  void Run();
  void Act(const kube::LeaderElection::Step& step);

  const Clock& clock_;
  const std::string ns_;
  const std::string name_;
  const std::function<void(const std::string&)> log_;
  kube::InterruptibleSleeper sleeper_;
  kube::Client client_;
  kube::LeaderElection election_;
  std::atomic<bool> leading_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace tahoma::controller

// A fleet of virtual nodes in an API server: few threads that keep thousands of nodes there.
//
//   Fleet fleet({.plan = plan}, {.transport = *transport, .clock = clock, .log = Log});
//   fleet.Start();
//   …                                       // until the program is told to end
//   fleet.Stop();                           // everything stays in the server
//
// A server that does not answer, or cannot, is asked again after a pause that doubles up to five
// seconds, by each thread for itself: so many requests in that time, however many nodes there are.
// What the server refuses is tried again every half minute. A fleet that starts again takes over
// what is there.
//
// Scope: threads, pauses and the log. What is done is virtual_nodes.h, when fleet_schedule.h.
//
// Thread safety: Start and Stop belong to one thread; everything else may be called from any.

#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/base/rng.h"
#include "lib/kube/client.h"
#include "lib/kube/transport.h"
#include "sim-node/fleet/fleet_plan.h"
#include "sim-node/fleet/fleet_progress.h"
#include "sim-node/fleet/fleet_schedule.h"
#include "sim-node/fleet/virtual_nodes.h"

namespace tahoma::sim {

struct FleetOptions {
  FleetPlan plan = {};
  std::chrono::nanoseconds lease_period = std::chrono::seconds(10);
  std::chrono::nanoseconds resync_period = std::chrono::minutes(5);
  int workers = 16;
};

class Fleet {
 public:
  struct Ports {
    kube::Transport& transport;
    const Clock& clock;
    std::uint64_t seed = 0;
    std::function<void(std::string_view line)> log = {};
    std::function<void(std::string_view line)> warn = {};
    std::function<void()> interrupt = {};  // ends the requests that are under way, for Stop
  };

  Fleet(FleetOptions options, Ports ports);
  ~Fleet() { Stop(); }
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  void Start();
  // Waits for the threads.
  void Stop();

  // Does on the caller's thread what is due now, in place of Start; returns how many tasks were
  // done. Ends at the first that the server does not answer.
  std::size_t RunDue();

  // Whether every node has been made or taken over.
  bool is_complete() const;
  FleetProgress::Counts counts() const;

 private:
  void Work(Rng rng);
  absl::Status Do(const FleetTask& task, std::size_t& slices);
  // Returns whether the server has answered.
  bool Settle(const FleetTask& task, const absl::Status& status, std::size_t slices)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WaitForWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Pause(std::chrono::nanoseconds duration) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Says once when a larger fleet of the name was there before.
  void LookBeyond();

  const FleetOptions options_;
  const Ports ports_;
  VirtualNodes nodes_;
  mutable Mutex mutex_;
  CondVar changed_;
  FleetSchedule schedule_ ABSL_GUARDED_BY(mutex_);
  FleetProgress progress_ ABSL_GUARDED_BY(mutex_);
  bool looked_beyond_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace tahoma::sim

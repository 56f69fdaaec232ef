// The next tasks of a fleet: for each node, the task and its time.
//
// A node is ensured first (Node, Lease, ResourceSlices), and again in each resync period; from its
// first time on its lease is renewed in each lease period. Each node has its own moment in these
// periods. The moments are evenly spread, so the server never sees a herd, even when all nodes were
// ensured at once. Renewals come before everything else: existing nodes are kept before new nodes
// are made. A missed moment is not made up for.
//
// A node takes 40 bytes here, and nothing elsewhere.
//
// Scope: order and times. Without I/O and clock.
//
// Thread safety: none; fleet.h guards the schedule.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/base/clock.h"

namespace tahoma::sim {

enum class FleetWork : std::uint8_t { kEnsure, kRenewLease };

struct FleetTask {
  std::uint32_t node = 0;
  FleetWork work = FleetWork::kEnsure;
  bool first = false;                    // kEnsure: this process has not seen the node yet
  std::chrono::nanoseconds late = {};    // the delay of the task
  std::chrono::nanoseconds silent = {};  // kRenewLease: since the lease was renewed last
};

class FleetSchedule {
 public:
  struct Options {
    std::uint32_t nodes = 0;
    std::chrono::nanoseconds lease_period = std::chrono::seconds(10);
    std::chrono::nanoseconds resync_period = std::chrono::minutes(5);
  };

  FleetSchedule(Options options, MonotonicTime start);

  // Returns the most urgent due task. The task is not returned again until finished or put back.
  std::optional<FleetTask> PopDue(MonotonicTime now);

  // Returns the time of the next task; nothing while all tasks are under way.
  std::optional<MonotonicTime> next() const;

  void Finish(const FleetTask& task, MonotonicTime now);
  // The task failed and is due again at this time.
  void PutBack(const FleetTask& task, MonotonicTime at);

  // The number of nodes ensured at least once.
  std::uint32_t ensured() const { return ensured_; }

 private:
  // Due times since the start.
  struct Entry {
    std::chrono::nanoseconds at = {};
    std::uint32_t node = 0;

    // The standard library's heaps have the greatest in front.
    bool operator<(const Entry& other) const {
      return at != other.at ? at > other.at : node > other.node;
    }
  };
  using Heap = std::vector<Entry>;

  static void Push(Entry entry, Heap& heap);
  static std::optional<Entry> Pop(std::chrono::nanoseconds now, Heap& heap);
  // The node's first moment of the period after `now`.
  std::chrono::nanoseconds MomentAfter(std::chrono::nanoseconds now,
                                       std::chrono::nanoseconds period, std::uint32_t node) const;

  const Options options_;
  const MonotonicTime start_;
  Heap ensure_;
  Heap renew_;
  std::vector<std::chrono::nanoseconds> renewed_;  // by node; kNever for a node never ensured
  std::uint32_t ensured_ = 0;
};

}  // namespace tahoma::sim

// The next tasks of a fleet: for each node, the task and its time.
//
// A node is ensured first (Node, Lease, ResourceSlices), and again in each resync period; from its
// first time on its lease is renewed in each lease period. Each node has its own moment in these
// periods, evenly spread, so that the server never sees a herd, also when all were ensured at once.
// Renewals come before everything else: what exists is kept before more is made. A moment that was
// missed is not made up for.
//
// A node takes 40 bytes here, and nothing elsewhere.
//
// Scope: order and times. Without I/O and clock.
//
// Thread safety: none; fleet.h guards it.

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
  std::chrono::nanoseconds late = {};    // since it was due
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

  // Returns the most urgent task that is due. It is not given again until it is finished or put
  // back.
  std::optional<FleetTask> Take(MonotonicTime now);

  // Returns when the next task is due; nothing while all of them are under way.
  std::optional<MonotonicTime> next() const;

  void Finish(const FleetTask& task, MonotonicTime now);
  // The task failed and is due again at that time.
  void PutBack(const FleetTask& task, MonotonicTime at);

  // The nodes that have been ensured at least once.
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
  // The node's first moment of that period after `now`.
  std::chrono::nanoseconds MomentAfter(std::chrono::nanoseconds now,
                                       std::chrono::nanoseconds period, std::uint32_t node) const;

  const Options options_;
  const MonotonicTime start_;
  Heap ensure_;
  Heap renew_;
  std::vector<std::chrono::nanoseconds> renewed_;  // by node; kNever until it is ensured
  std::uint32_t ensured_ = 0;
};

}  // namespace tahoma::sim

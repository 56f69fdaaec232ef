// A fleet's lines in the log: its progress, its obstacles, and late leases.
//
// One line every five seconds until all nodes are there, one then; afterwards silence, unless
// something is wrong: then a line in half a minute.
//
// Scope: counters and sentences; without clock.
//
// Thread safety: none; fleet.h guards it.

#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/clock.h"

namespace tahoma::sim {

class FleetProgress {
 public:
  struct Counts {
    std::uint64_t nodes = 0;     // ensured at least once
    std::uint64_t slices = 0;    // of these
    std::uint64_t renewals = 0;  // of leases
    std::uint64_t failures = 0;  // of tasks, each of which is tried again
  };
  struct Line {
    std::string text = {};
    bool warning = false;
  };

  FleetProgress(std::uint32_t nodes, std::chrono::nanoseconds lease_period, MonotonicTime start)
      : nodes_(nodes), lease_period_(lease_period), start_(start), told_(start) {}

  void CountEnsured(bool first, std::size_t slices);
  void CountRenewal(std::chrono::nanoseconds late);
  void CountFailure(const absl::Status& why);

  // Returns what is to be said now, often nothing.
  std::vector<Line> Tell(MonotonicTime now);

  bool is_complete() const { return counts_.nodes == nodes_; }
  const Counts& counts() const { return counts_; }

 private:
  void TellOfPublishing(MonotonicTime now, std::vector<Line>& lines);
  void TellOfProblems(MonotonicTime now, std::vector<Line>& lines);

  const std::uint64_t nodes_;
  const std::chrono::nanoseconds lease_period_;
  const MonotonicTime start_;
  Counts counts_;
  MonotonicTime told_;             // of publishing
  std::uint64_t slices_told_ = 0;  // as they were then
  bool told_complete_ = false;
  std::optional<MonotonicTime> warned_;
  std::uint64_t failures_told_ = 0;
  std::string problem_;                 // the newest
  std::chrono::nanoseconds late_ = {};  // the most since the last warning
};

}  // namespace tahoma::sim

// Counts of what programs did on the cores of a pod's claim: sums, and the differences of a period.
//
// A core's utilization is the part of the period, on the node's clock, in which a program ran on
// the core. All else of a program is in virtual time and counts when the program has completed.
//
// Scope: values. usage_node.h asks the sim-node, neuron_monitor.h and neuron_top.h print.
//
// Thread safety: values.

#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/isa/program.h"

namespace tahoma::sim {

// Sums since the node began; between two readings their differences.
struct PhysicalCounts {
  std::int64_t completed = 0;
  std::int64_t program_errors = 0;
  std::int64_t hardware_errors = 0;
  std::int64_t in_use_ns = 0;  // of the node's clock
  std::int64_t time_ps = 0;    // virtual
  std::array<std::int64_t, isa::kEngines> engines_ps{};
  std::int64_t hbm_bytes = 0;
  std::int64_t flops = 0;
};

struct LogicalCore {
  int chip = 0;
  int core = 0;  // of the chip
  int id = 0;    // of the node
  std::vector<PhysicalCounts> physical{};
};

struct ChipMemoryUse {
  int chip = 0;
  std::int64_t capacity_bytes = 0;  // the claim's share
  std::int64_t used_bytes = 0;      // written, in pages of 64 KiB
};

struct CoreReading {
  std::int64_t clock_ns = 0;
  std::vector<ChipMemoryUse> chips{};
  std::vector<LogicalCore> cores{};
};

// Reads sim-node's answer to coreCounters; kInvalidArgument when the text is none.
absl::StatusOr<CoreReading> ParseCoreReading(std::string_view json);

// The use of a logical core in a period.
struct CoreUse {
  LogicalCore of{};                            // the differences of its counts
  double utilization = 0;                      // 0 to 1
  std::vector<double> physical_utilization{};  // as `of.physical`

  PhysicalCounts Sum() const;
};

// A core that `before` lacks is left out.
std::vector<CoreUse> UsesBetween(const CoreReading& before, const CoreReading& after);
double SecondsBetween(const CoreReading& before, const CoreReading& after);

}  // namespace tahoma::sim

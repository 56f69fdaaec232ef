// neuron-monitor: prints as JSON, in AWS's schema, what the cores of the pod's claim did in each
// period.
//
//   const auto options = ParseMonitorArguments({"-c", "monitor.json"});
//   std::cout << MonitorDocument(period, *options);          // one line
//
// The claim stands for the one process of AWS's neuron_runtime_data. A metric group that an
// emulated node does not know says so in its `error`
// (docs/tasks/kernels.md#neuron-top-and-neuron-monitor).
//
// Scope: options and text. app/neuron_monitor_main.cc waits and asks.
//
// Thread safety: none: getopt_long keeps its place in the process.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "sim-node/workload/core_usage.h"
#include "sim-node/workload/neuron_ls.h"

namespace tahoma::sim {

// Two readings, one period apart, and the claim's devices at the end of the period.
struct UsagePeriod {
  DeviceList devices{};
  CoreReading before{};
  CoreReading after{};
};

struct MonitorOptions {
  std::chrono::nanoseconds period = std::chrono::seconds(5);
  std::vector<std::string> runtime_metrics{};  // types of metric groups, in the order of printing
  std::vector<std::string> system_metrics{};
  bool help = false;
};

// Reads arguments without the program's name, and the configuration file that they name; without a
// file there are all metric groups. kInvalidArgument names the wrong option or field.
absl::StatusOr<MonitorOptions> ParseMonitorArguments(const std::vector<std::string>& arguments);
// Reads a configuration of AWS's form. A metric's own period and a runtime's tag_filter mean
// nothing here.
absl::StatusOr<MonitorOptions> ParseMonitorConfig(std::string_view json);
std::string MonitorHelp();

// Returns one line.
std::string MonitorDocument(const UsagePeriod& period, const MonitorOptions& options);

}  // namespace tahoma::sim

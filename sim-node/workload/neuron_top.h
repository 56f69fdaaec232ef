// neuron-top: a table of what the cores of the pod's claim did in the last period.
//
//   std::cout << TopTable(period);
//
// Utilization is of the period, all other columns are of the programs that completed in the period,
// in virtual time.
//
// Scope: options and text. app/neuron_top_main.cc waits and asks.
//
// Thread safety: none: getopt_long keeps its place in the process.

#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "sim-node/workload/neuron_monitor.h"

namespace tahoma::sim {

struct TopOptions {
  bool once = false;  // one table, without control codes of a terminal
  bool help = false;
};

// Reads arguments without the program's name. kInvalidArgument names the wrong option.
absl::StatusOr<TopOptions> ParseTopArguments(const std::vector<std::string>& arguments);
std::string TopHelp();

std::string TopTable(const UsagePeriod& period);

}  // namespace tahoma::sim

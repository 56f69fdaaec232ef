// The result of a replay as text, CSV and JSON.
//
//   fmt::print("{}", TextReport({Measure(workload, easy), Measure(workload, tahoma)}));
//
// Numbers have a fixed number of digits, and no text depends on the time or the machine.
//
// Thread safety: pure functions.

#pragma once

#include <string>
#include <vector>

#include "controller/replay/measures.h"

namespace tahoma::controller {

// A table with a column for each policy.
std::string TextReport(const std::vector<ReplayMeasures>& policies);
// The same with commas, a row for each measure.
std::string CsvReport(const std::vector<ReplayMeasures>& policies);
// A list with an object for each policy.
std::string JsonReport(const std::vector<ReplayMeasures>& policies);

// Returns a line for each job: its submission, first start, end, wait, chips and queue.
std::string CsvOfJobs(const Workload& workload, const std::vector<ReplayRun>& runs);

}  // namespace tahoma::controller

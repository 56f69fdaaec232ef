// The measures of a replay: how busy the fleet was, and how long jobs waited.
//
// A job's wait is all the time from its submission to its end in which it did not run, so that jobs
// that had to begin anew have waited longer. Jobs that have not ended have no wait and are counted.
//
// Thread safety: values; pure functions.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/replay/replay.h"

namespace tahoma::controller {

struct ReplayMeasures {
  std::string policy;
  std::int64_t jobs = 0;
  std::int64_t unfinished = 0;
  // Chip-time used over chip-time of nodes that worked, in percent: from the first submission to
  // the last end, and to the last submission.
  double utilisation = 0;
  double utilisation_loaded = 0;
  double wait_mean = 0;  // seconds
  double wait_median = 0;
  double wait_p95 = 0;
  double wait_most = 0;
  // Mean of (wait + run) / run, where a run counts as ten seconds at least, and the quotient as 1.
  double slowdown = 0;
  double makespan = 0;  // seconds from the first submission to the last end
  // Free chips, averaged over the makespan, while the first waiting job asks for no more than them.
  double stranded = 0;
  // The largest difference of a queue's part of the used chip-time to its weight's part of all
  // weights while every queue has a waiting job, in percent; nullopt without such a time.
  std::optional<double> share_error;
  std::int64_t failures = 0;  // of nodes
  std::int64_t lost = 0;      // runs that a failure ended
  std::int64_t ended = 0;     // runs that were ended for others
};

ReplayMeasures Measure(const Workload& workload, const ReplayRun& run);

struct MeasureRow {
  std::string name;  // as a key of JSON
  std::string label;
  int digits = 0;  // after the point
  std::optional<double> value;
};
std::vector<MeasureRow> RowsOf(const ReplayMeasures& measures);

// Returns the waits of the jobs that have ended, in seconds and ascending.
std::vector<double> WaitsOf(const Workload& workload, const ReplayRun& run);

}  // namespace tahoma::controller

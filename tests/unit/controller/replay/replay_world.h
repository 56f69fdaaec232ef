// Traces and replays of tests.

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "controller/replay/replay.h"
#include "lib/base/rng.h"

namespace tahoma::controller {

struct SmallJob {
  int submit = 0;
  std::int64_t chips = 1;
  int run = 1;
  int asked = 0;  // 0: as long as it runs
};

// Jobs of single chips that may lie anywhere: geometry does not matter to them.
inline TraceJob ScatteredJob(const SmallJob& small) {
  TraceJob job;
  job.submit = std::chrono::seconds(small.submit);
  job.shape = "1x1x1";
  job.slices = small.chips;
  job.run = std::chrono::seconds(small.run);
  if (small.asked != 0) job.asked = std::chrono::seconds(small.asked);
  return job;
}

// Jobs of boxes.
inline TraceJob BoxJob(const SmallJob& small) {
  TraceJob job = ScatteredJob({.submit = small.submit, .run = small.run, .asked = small.asked});
  job.shape = "";
  job.slices = 1;
  job.chips = small.chips;
  return job;
}

inline Trace TraceOf(std::vector<TraceJob> jobs) {
  Trace trace;
  trace.start = *ParseTime("2026-01-01T00:00:00Z");
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].name = std::to_string(i + 1);
  trace.jobs = std::move(jobs);
  return trace;
}

inline ReplayRun RunOf(const Trace& trace, const std::string& fleet, ReplayOptions options) {
  const auto parsed = ParseFleet(fleet);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const auto workload = MakeWorkload(trace, *parsed);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return Replay(*workload, *parsed, options, [](const ReplayProgress&) {});
}

// Seconds from the trace's start to each job's first start; -1 for a job that has not started.
inline std::vector<std::int64_t> StartsOf(const Trace& trace, const ReplayRun& run) {
  std::vector<std::int64_t> starts;
  for (const JobOutcome& outcome : run.outcomes) {
    starts.push_back(
        !outcome.first_start
            ? -1
            : std::chrono::floor<std::chrono::seconds>(*outcome.first_start - trace.start).count());
  }
  return starts;
}

inline std::vector<SmallJob> RandomJobs(Rng& rng, int count, std::int64_t chips_most) {
  std::vector<SmallJob> jobs;
  int when = 0;
  for (int i = 0; i < count; ++i) {
    when += static_cast<int>(rng.Below(12));
    SmallJob job;
    job.submit = when;
    job.chips = 1 + static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(chips_most)));
    job.run = 1 + static_cast<int>(rng.Below(40));
    job.asked = rng.Chance(1, 2) ? 0 : job.run + static_cast<int>(rng.Below(40));
    jobs.push_back(job);
  }
  return jobs;
}

}  // namespace tahoma::controller

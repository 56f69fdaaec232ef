// Traces: the jobs that a replay runs, read from logs of batch systems or from our own YAML.
//
// SWF is the Standard Workload Format of the Parallel Workloads Archive: 18 numbers a line, -1 for
// what is not known, comments after a semicolon. A processor becomes `chips_per_processor` chips,
// and the chips are rounded up to what forms boxes: 1, 2, 4, 8, 16, 32 or a multiple of 64. A job
// without a size or without a run time cannot be replayed: such jobs are counted and left out. So
// a log's own waits and states are not used, and neither are its dependencies between jobs.
//
// Failures: kInvalidArgument names file, line, cause and what would be right.
//
// Scope: the text of a trace. Whether a fleet has room for its jobs is seen by the replay.
//
// Thread safety: values; pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/share/queue_spec.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

struct TraceJob {
  std::string name;
  std::chrono::seconds submit{0};  // after Trace::start
  // As the fields of a Gang's spec: a shape or chips, by the number of slices.
  std::string shape = {};
  std::optional<std::int64_t> chips = {};
  std::int64_t slices = 1;
  std::chrono::seconds run{0};  // at least a second
  // The longest that the job may run, as its user asked for: never less than `run`.
  std::optional<std::chrono::seconds> asked = {};
  std::string queue = "default";
  std::int32_t priority = 0;
  bool preemptible = false;
  bool checkpointable = true;
};

struct Trace {
  WallTime start;
  std::vector<TraceJob> jobs;     // ascending by `submit`, in the file's order where equal
  std::vector<QueueSpec> queues;  // none: all jobs wait in one queue
  // Jobs that were left out or changed.
  std::size_t without_size = 0;
  std::size_t without_run_time = 0;
  std::size_t rounded_up = 0;  // asked for chips that form no box
  std::size_t cut_off = 0;     // ran longer than asked, and end when the time is over
};

struct TraceOptions {
  double chips_per_processor = 1;  // SWF
  // Jobs come so many times as fast: the times between submissions are divided by it.
  double load = 1;
};

// The most jobs of a trace, and the most text.
inline constexpr std::size_t kTraceJobsMost = 2'000'000;
inline constexpr std::size_t kTraceBytesMost = 512U << 20U;

absl::StatusOr<Trace> ReadSwf(std::string_view text, std::string_view name,
                              const TraceOptions& options);

// Reads `apiVersion: tahoma.dev/v1alpha1`, `kind: ReplayTrace` (docs/tasks/replay.md).
absl::StatusOr<Trace> ReadYamlTrace(std::string_view text, std::string_view name);

// Reads a trace of either form, by its text; what gzip has compressed is decompressed first.
absl::StatusOr<Trace> ReadTrace(std::string_view text, std::string_view name,
                                const TraceOptions& options);

}  // namespace tahoma::controller

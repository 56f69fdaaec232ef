// Runs the jobs of a trace in virtual time, as a policy decides.
//
// Jobs run for the time of the trace. The times of nodes' failures follow from the seed alone: all
// policies meet the same failures. A job on a failing node begins anew, from the start; a job ended
// by the policy for another job continues later, if the job has checkpoints. The same arguments
// give the same result, byte by byte.
//
// Failures: kInvalidArgument for a trace of which no job fits the fleet.
//
// Scope: time and ends. A policy decides who starts where (replay_policy.h); measures.h adds up.
//
// Thread safety: pure functions; `progress` is called on the caller's thread.

#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "controller/replay/replay_fleet.h"
#include "controller/replay/replay_policy.h"
#include "controller/replay/trace.h"

namespace tahoma::controller {

enum class PolicyKind : std::uint8_t { kFirstFit, kEasy, kConservative, kTahoma };
inline constexpr std::array kPolicyNames = {"first-fit", "easy", "conservative", "tahoma"};
inline std::string_view NameOf(PolicyKind kind) {
  return kPolicyNames[static_cast<std::size_t>(kind)];
}

// The jobs of a trace that a fleet has room for.
struct Workload {
  WallTime start;
  std::vector<TraceJob> jobs;
  ReplayJobs requests;  // of the same jobs
  std::vector<QueueSpec> queues;
  std::size_t too_large = 0;  // jobs left out, because they fit only a larger fleet
};

absl::StatusOr<Workload> MakeWorkload(const Trace& trace, const ReplayFleet& fleet);

struct ReplayOptions {
  PolicyKind policy = PolicyKind::kTahoma;
  std::uint64_t seed = 1;
  // The mean time until a node fails, after its start or its repair; nullopt: nodes never fail.
  std::optional<std::chrono::seconds> failures = {};
  std::chrono::seconds repair{4 * 3600};
};

struct JobOutcome {
  std::optional<WallTime> first_start;
  std::optional<WallTime> end;  // nullopt: has not ended
  std::chrono::seconds ran{0};  // until now, lost work included
  std::int32_t lost = 0;        // how often a node has failed under it
  std::int32_t ended = 0;       // how often the policy has ended it for another job
};

// The fleet from one moment to the next.
struct FleetMoment {
  WallTime when;
  std::int64_t used = 0;     // chips of running jobs
  std::int64_t working = 0;  // chips of nodes that work
  std::int64_t waiting = 0;  // jobs
  // Free chips while the first waiting job asks for no more than them.
  std::int64_t stranded = 0;
  bool contended = false;              // each queue with jobs has a waiting job
  std::vector<std::int64_t> by_queue;  // used chips, by Workload::queues
};

struct ReplayRun {
  PolicyKind policy = PolicyKind::kTahoma;
  std::vector<JobOutcome> outcomes;  // by job
  std::vector<FleetMoment> moments;  // ascending; the last one has no length
  std::int64_t failures = 0;         // of nodes
  std::int64_t chips = 0;            // of the fleet
};

// How far a replay is.
struct ReplayProgress {
  std::size_t ended = 0;  // jobs
  std::size_t jobs = 0;
  WallTime now;
};

ReplayRun Replay(const Workload& workload, const ReplayFleet& fleet, const ReplayOptions& options,
                 absl::FunctionRef<void(const ReplayProgress&)> progress);

}  // namespace tahoma::controller

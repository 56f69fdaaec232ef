// A policy of a replay: which of the waiting jobs start now, and where.
//
// The replay owns time and the ends of jobs, a policy owns places. A policy hears all news of a
// moment before it decides. A policy knows the longest run of a job (ReplayJob::limit), as a
// scheduler does, and not the real one.
//
// Scope: the interface, and what a policy knows of jobs.
//
// Thread safety: one thread.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/model/gang.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// Index into ReplayJobs.
using JobIndex = std::uint32_t;

struct ReplayJob {
  std::shared_ptr<const GangSpec> spec;  // its queue, priority and pods
  std::int64_t chips = 0;
  std::uint32_t kind = 0;  // equal for jobs with equal shapes
  WallTime submitted;
  // The longest that its next run may take.
  std::chrono::seconds limit{0};
};
using ReplayJobs = std::vector<ReplayJob>;

struct StartedJob {
  JobIndex job = 0;
  std::vector<std::string> nodes = {};  // sorted
};

struct PolicyNews {
  std::vector<StartedJob> started;
  // Running jobs ended by the policy for other jobs: each is submitted again.
  std::vector<JobIndex> ended;
};

class ReplayPolicy {
 public:
  virtual ~ReplayPolicy() = default;

  // The job waits from now on. Jobs come in the order of their submission, and again after an end
  // by the policy or a loss.
  virtual void Submit(JobIndex job, WallTime now) = 0;
  // The running job has ended by itself.
  virtual void Finish(JobIndex job) = 0;
  // The running job has lost a node, and its place.
  virtual void Lose(JobIndex job) = 0;
  // The node works, or does not. Jobs on a failing node are lost before.
  virtual void SetNode(const std::string& node, bool works) = 0;

  virtual PolicyNews Decide(WallTime now) = 0;
  // When Decide may have something to do though nothing happens.
  virtual std::optional<WallTime> wake() const = 0;
};

}  // namespace tahoma::controller

#include "controller/replay/measures.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <string>

namespace tahoma::controller {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kShortest = 10;  // of runs, for the slowdown

double SecondsOf(std::chrono::nanoseconds time) { return Seconds(time).count(); }

double WaitOf(const ReplayJob& job, const JobOutcome& outcome) {
  return SecondsOf(*outcome.end - job.submitted - outcome.ran);
}

// Chip-time, and time, of a part of a replay.
struct Sums {
  double used = 0;
  double working = 0;
  double stranded = 0;
  double time = 0;
};

Sums SumsUntil(const ReplayRun& run, WallTime until) {
  Sums sums;
  for (std::size_t i = 0; i + 1 < run.moments.size(); ++i) {
    const FleetMoment& moment = run.moments[i];
    const double time = SecondsOf(std::min(run.moments[i + 1].when, until) - moment.when);
    if (time <= 0) break;
    sums.used += time * static_cast<double>(moment.used);
    sums.working += time * static_cast<double>(moment.working);
    sums.stranded += time * static_cast<double>(moment.stranded);
    sums.time += time;
  }
  return sums;
}

double Percent(double part, double all) { return all > 0 ? 100 * part / all : 0; }

// Returns the value that that part of the sorted values does not exceed.
double Quantile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

// Returns the part of the fleet that is due to each queue: at each level of the tree in the ratio
// of the weights, where queues without jobs, also below, have no part. nullopt for a queue without
// own jobs, and for a queue with jobs in queues below.
std::vector<std::optional<double>> DuesOf(const Workload& workload) {
  std::map<std::string, const QueueSpec*> queues;
  for (const QueueSpec& queue : workload.queues) queues.emplace(queue.name, &queue);
  std::set<const QueueSpec*> asking;
  std::map<std::string, double> weights;  // of the asking queues below each parent
  for (const TraceJob& job : workload.jobs) {
    auto at = queues.find(job.queue);
    while (at != queues.end() && asking.insert(at->second).second) {
      weights[at->second->parent] += static_cast<double>(at->second->weight);
      at = queues.find(at->second->parent);
    }
  }
  std::vector<std::optional<double>> dues;
  for (const QueueSpec& queue : workload.queues) {
    std::optional<double>& due = dues.emplace_back();
    if (!asking.contains(&queue) || weights.contains(queue.name)) continue;
    due = 1;
    for (auto at = queues.find(queue.name); at != queues.end();
         at = queues.find(at->second->parent)) {
      *due *= static_cast<double>(at->second->weight) / weights.at(at->second->parent);
    }
  }
  return dues;
}

std::optional<double> ShareError(const Workload& workload, const ReplayRun& run) {
  std::vector<double> used(workload.queues.size());
  for (std::size_t i = 0; i + 1 < run.moments.size(); ++i) {
    const FleetMoment& moment = run.moments[i];
    if (!moment.contended) continue;
    const double time = SecondsOf(run.moments[i + 1].when - moment.when);
    for (std::size_t q = 0; q < used.size(); ++q) {
      used[q] += time * static_cast<double>(moment.by_queue[q]);
    }
  }
  const double all = std::accumulate(used.begin(), used.end(), 0.0);
  if (all <= 0) return std::nullopt;
  const std::vector<std::optional<double>> dues = DuesOf(workload);
  double error = 0;
  for (std::size_t q = 0; q < used.size(); ++q) {
    if (dues[q]) error = std::max(error, std::abs(used[q] / all - *dues[q]));
  }
  return 100 * error;
}

void MeasureJobs(const Workload& workload, const ReplayRun& run, ReplayMeasures& measures) {
  double slowdowns = 0;
  for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
    const JobOutcome& outcome = run.outcomes[i];
    measures.lost += outcome.lost;
    measures.ended += outcome.ended;
    if (!outcome.end) {
      ++measures.unfinished;
      continue;
    }
    const double length = static_cast<double>(workload.jobs[i].run.count());
    const double stay = SecondsOf(*outcome.end - workload.requests[i].submitted);
    slowdowns += std::max(1.0, stay / std::max(length, kShortest));
  }
  const std::vector<double> waits = WaitsOf(workload, run);
  if (waits.empty()) return;
  const auto count = static_cast<double>(waits.size());
  measures.slowdown = slowdowns / count;
  measures.wait_mean = std::accumulate(waits.begin(), waits.end(), 0.0) / count;
  measures.wait_median = Quantile(waits, 0.5);
  measures.wait_p95 = Quantile(waits, 0.95);
  measures.wait_most = waits.back();
}

}  // namespace

std::vector<double> WaitsOf(const Workload& workload, const ReplayRun& run) {
  std::vector<double> waits;
  for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
    if (run.outcomes[i].end) waits.push_back(WaitOf(workload.requests[i], run.outcomes[i]));
  }
  std::ranges::sort(waits);
  return waits;
}

ReplayMeasures Measure(const Workload& workload, const ReplayRun& run) {
  ReplayMeasures measures;
  measures.policy = NameOf(run.policy);
  measures.jobs = std::ssize(workload.jobs);
  measures.failures = run.failures;
  MeasureJobs(workload, run, measures);
  WallTime last_end = workload.requests.front().submitted;
  for (const JobOutcome& outcome : run.outcomes) {
    if (outcome.end) last_end = std::max(last_end, *outcome.end);
  }
  const Sums sums = SumsUntil(run, last_end);
  const Sums loaded = SumsUntil(run, workload.requests.back().submitted);
  measures.makespan = SecondsOf(last_end - workload.requests.front().submitted);
  measures.utilisation = Percent(sums.used, sums.working);
  measures.utilisation_loaded = Percent(loaded.used, loaded.working);
  measures.stranded = sums.time > 0 ? sums.stranded / sums.time : 0;
  measures.share_error = ShareError(workload, run);
  return measures;
}

std::vector<MeasureRow> RowsOf(const ReplayMeasures& measures) {
  const auto whole = [](std::int64_t count) { return static_cast<double>(count); };
  return {
      {"jobs", "jobs", 0, whole(measures.jobs)},
      {"unfinished", "unfinished", 0, whole(measures.unfinished)},
      {"utilisationPercent", "utilisation, %", 2, measures.utilisation},
      {"utilisationToLastSubmitPercent", "… to the last submission, %", 2,
       measures.utilisation_loaded},
      {"waitMeanSeconds", "wait, mean, s", 1, measures.wait_mean},
      {"waitMedianSeconds", "wait, median, s", 0, measures.wait_median},
      {"waitP95Seconds", "wait, 95 % of jobs, s", 0, measures.wait_p95},
      {"waitMostSeconds", "wait, longest, s", 0, measures.wait_most},
      {"boundedSlowdown", "bounded slowdown, mean", 2, measures.slowdown},
      {"makespanSeconds", "makespan, s", 0, measures.makespan},
      {"strandedChips", "stranded chips, mean", 2, measures.stranded},
      {"shareErrorPercent", "share error, %", 2, measures.share_error},
      {"nodeFailures", "failures of nodes", 0, whole(measures.failures)},
      {"runsLost", "runs lost by them", 0, whole(measures.lost)},
      {"runsEnded", "runs ended for others", 0, whole(measures.ended)},
  };
}

}  // namespace tahoma::controller

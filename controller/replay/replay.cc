#include "controller/replay/replay.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "controller/core/forecast/what_if.h"
#include "controller/model/cluster.h"
#include "controller/plan/planner.h"
#include "controller/replay/baselines.h"
#include "controller/replay/core_policy.h"
#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using std::chrono::seconds;

// A replay ends so long after its start: the times of clocks are bounded.
constexpr std::chrono::hours kLongest{24 * 366 * 100};

// A policy, and the repair of nodes, get this long when no job is submitted, starts or ends.
constexpr std::chrono::hours kPatience{24 * 7};

seconds LimitOf(const TraceJob& job) { return job.asked.value_or(job.run); }

std::int64_t ChipsOf(const GangSpec& spec) {
  std::int64_t chips = 0;
  for (const MemberSpec& member : spec.members) {
    chips += member.claims.front().requests.front().alternatives.front().count;
  }
  return chips;
}

absl::StatusOr<ReplayJob> RequestOf(const TraceJob& job, std::size_t number, WallTime start) {
  TAHOMA_ASSIGN_OR_RETURN(
      const auto made,
      GangOfRequest({.members = 0, .shape = job.shape, .chips = job.chips, .slices = job.slices},
                    {"replay", fmt::format("job-{:07}", number)}));
  auto spec = std::make_shared<GangSpec>(*made);
  spec->queue = job.queue;
  spec->priority = job.priority;
  spec->preemptible = job.preemptible;
  spec->checkpointable = job.checkpointable;
  ReplayJob request;
  request.chips = ChipsOf(*spec);
  request.spec = std::move(spec);
  request.submitted = start + job.submit;
  request.limit = LimitOf(job);
  return request;
}

std::unique_ptr<ReplayPolicy> MakePolicy(PolicyKind kind, const Workload& workload,
                                         const ReplayJobs& jobs, const ReplayFleet& fleet) {
  switch (kind) {
    case PolicyKind::kFirstFit:
      return MakeBaseline(BaselineKind::kFirstFit, jobs, NodesOf(fleet));
    case PolicyKind::kEasy:
      return MakeBaseline(BaselineKind::kEasy, jobs, NodesOf(fleet));
    case PolicyKind::kConservative:
      return MakeBaseline(BaselineKind::kConservative, jobs, NodesOf(fleet));
    case PolicyKind::kTahoma:
      return std::make_unique<CorePolicy>(workload.queues, jobs, NodesOf(fleet));
  }
  TAHOMA_CHECK(false);
  return nullptr;
}

// A node that fails at times of its own.
struct FailingNode {
  std::string name;
  std::int64_t chips = 0;
  Rng rng{0};
  bool works = true;
};

// Returns an exponentially distributed time of that mean, a second at least.
seconds NextFailure(Rng& rng, seconds mean) {
  constexpr std::uint64_t kSteps = std::uint64_t{1} << 53U;
  const double uniform = static_cast<double>(rng.Below(kSteps) + 1) / static_cast<double>(kSteps);
  const double time = -std::log(uniform) * static_cast<double>(mean.count());
  constexpr double kMost = 1.5e9;  // nobody sees a failure after 47 years
  return seconds(1 + std::llround(std::min(time, kMost)));
}

class Run {
 public:
  Run(const Workload& workload, const ReplayFleet& fleet, const ReplayOptions& options)
      : workload_(workload), options_(options), jobs_(workload.requests) {
    result_.policy = options.policy;
    result_.outcomes.resize(jobs_.size());
    result_.chips = working_ = fleet.chips();
    states_.resize(jobs_.size());
    for (std::size_t i = 0; i < jobs_.size(); ++i) states_[i].left = workload.jobs[i].run;
    used_by_queue_.resize(workload.queues.size());
    for (const TraceJob& job : workload.jobs) {
      const auto queue = std::ranges::find(workload.queues, job.queue, &QueueSpec::name);
      if (queue == workload.queues.end()) continue;
      queues_.try_emplace(
          job.queue, Share{.index = static_cast<std::size_t>(queue - workload.queues.begin())});
    }
    policy_ = MakePolicy(options.policy, workload, jobs_, fleet);
    if (options.failures) AddFailures(fleet);
  }

  ReplayRun Go(absl::FunctionRef<void(const ReplayProgress&)> progress) {
    while (const std::optional<WallTime> next = NextMoment()) {
      now_ = *next;
      PassEvents();
      Decide();
      Note();
      progress({.ended = ended_, .jobs = jobs_.size(), .now = now_});
    }
    return std::move(result_);
  }

 private:
  struct State {
    seconds left{0};  // to run
    WallTime started;
    bool running = false;
    std::vector<std::string> nodes;
  };
  struct Share {
    std::size_t index = 0;
    std::int64_t waiting = 0;
  };

  void AddFailures(const ReplayFleet& fleet) {
    for (const NodeFacts& node : NodesOf(fleet)) {
      FailingNode failing;
      failing.name = node.name;
      failing.chips = std::ssize(node.devices);
      failing.rng = Rng(options_.seed * 1'000'003 + nodes_.size());
      failing.rng = Rng(failing.rng.Next());
      node_events_.emplace(workload_.start + NextFailure(failing.rng, *options_.failures),
                           nodes_.size());
      nodes_.push_back(std::move(failing));
    }
  }

  // Returns nullopt when nothing happens any more.
  std::optional<WallTime> NextMoment() const {
    std::optional<WallTime> next;
    const auto consider = [&](WallTime when) {
      if (!next || when < *next) next = when;
    };
    if (submitted_ < jobs_.size()) consider(jobs_[submitted_].submitted);
    if (!finishes_.empty()) consider(finishes_.begin()->first);
    if (!next && waiting_.empty()) return std::nullopt;
    if (!node_events_.empty()) consider(node_events_.begin()->first);
    if (!waiting_.empty()) {
      if (const auto wake = policy_->wake()) consider(std::max(*wake, now_ + seconds(1)));
    }
    // A job that starts nowhere though nothing runs is left unfinished in the end.
    if (next && finishes_.empty() && submitted_ == jobs_.size() &&
        *next - moved_ > kPatience + options_.repair) {
      return std::nullopt;
    }
    if (next && *next - workload_.start > kLongest) return std::nullopt;
    return next;
  }

  // Tells the policy all that happens now.
  void PassEvents() {
    while (!finishes_.empty() && finishes_.begin()->first <= now_) {
      const JobIndex job = finishes_.begin()->second;
      Stop(job);
      policy_->Finish(job);
      result_.outcomes[job].end = now_;
      ++ended_;
      moved_ = now_;
    }
    while (!node_events_.empty() && node_events_.begin()->first <= now_) {
      const std::size_t node = node_events_.begin()->second;
      node_events_.erase(node_events_.begin());
      Turn(nodes_[node], node);
    }
    while (submitted_ < jobs_.size() && jobs_[submitted_].submitted <= now_) {
      Wait(static_cast<JobIndex>(submitted_++));
      moved_ = now_;
    }
  }

  // Lets a node fail or come back.
  void Turn(FailingNode& node, std::size_t index) {
    node.works = !node.works;
    working_ += node.works ? node.chips : -node.chips;
    if (node.works) {
      node_events_.emplace(now_ + NextFailure(node.rng, *options_.failures), index);
      policy_->SetNode(node.name, true);
      return;
    }
    ++result_.failures;
    node_events_.emplace(now_ + options_.repair, index);
    std::vector<JobIndex> lost;
    for (const auto& [when, job] : finishes_) {
      if (std::ranges::binary_search(states_[job].nodes, node.name)) lost.push_back(job);
    }
    std::ranges::sort(lost);
    for (const JobIndex job : lost) {
      Stop(job);
      policy_->Lose(job);
      ++result_.outcomes[job].lost;
      states_[job].left = workload_.jobs[job].run;
    }
    policy_->SetNode(node.name, false);
    for (const JobIndex job : lost) Wait(job);
  }

  void Decide() {
    // A job that was ended for another waits again at once, and may have a place elsewhere.
    for (bool again = true; again;) {
      PolicyNews news = policy_->Decide(now_);
      if (!news.started.empty()) moved_ = now_;
      for (const JobIndex job : news.ended) EndForOthers(job);
      for (StartedJob& started : news.started) Start(started);
      for (const JobIndex job : news.ended) Wait(job);
      again = !news.ended.empty();
    }
  }

  void Wait(JobIndex job) {
    const seconds limit = LimitOf(workload_.jobs[job]);
    jobs_[job].limit = limit - (workload_.jobs[job].run - states_[job].left);
    waiting_.insert({-jobs_[job].spec->priority, job});
    if (auto* share = ShareOf(job)) ++share->waiting;
    policy_->Submit(job, now_);
  }

  void Start(StartedJob& started) {
    State& state = states_[started.job];
    TAHOMA_CHECK(!state.running);
    state.running = true;
    state.started = now_;
    state.nodes = std::move(started.nodes);
    finishes_.emplace(now_ + state.left, started.job);
    used_ += jobs_[started.job].chips;
    waiting_.erase({-jobs_[started.job].spec->priority, started.job});
    if (auto* share = ShareOf(started.job)) {
      --share->waiting;
      used_by_queue_[share->index] += jobs_[started.job].chips;
    }
    JobOutcome& outcome = result_.outcomes[started.job];
    if (!outcome.first_start) outcome.first_start = now_;
  }

  // Takes the chips of a running job.
  void Stop(JobIndex job) {
    State& state = states_[job];
    TAHOMA_CHECK(state.running);
    state.running = false;
    finishes_.erase({state.started + state.left, job});
    used_ -= jobs_[job].chips;
    if (auto* share = ShareOf(job)) used_by_queue_[share->index] -= jobs_[job].chips;
    result_.outcomes[job].ran += std::chrono::floor<seconds>(now_ - state.started);
  }

  void EndForOthers(JobIndex job) {
    State& state = states_[job];
    Stop(job);
    ++result_.outcomes[job].ended;
    const seconds done = std::chrono::floor<seconds>(now_ - state.started);
    state.left = workload_.jobs[job].checkpointable ? state.left - done : workload_.jobs[job].run;
  }

  Share* ShareOf(JobIndex job) {
    const auto found = queues_.find(jobs_[job].spec->queue);
    return found == queues_.end() ? nullptr : &found->second;
  }

  void Note() {
    FleetMoment moment;
    moment.when = now_;
    moment.used = used_;
    moment.working = working_;
    moment.waiting = std::ssize(waiting_);
    const std::int64_t free = working_ - used_;
    if (!waiting_.empty() && jobs_[waiting_.begin()->second].chips <= free) moment.stranded = free;
    moment.by_queue = used_by_queue_;
    moment.contended = queues_.size() > 1 && std::ranges::all_of(queues_, [](const auto& queue) {
                         return queue.second.waiting > 0;
                       });
    auto& moments = result_.moments;
    if (!moments.empty() && moments.back().when == now_) moments.pop_back();
    moments.push_back(std::move(moment));
  }

  const Workload& workload_;
  const ReplayOptions options_;
  ReplayJobs jobs_;
  std::unique_ptr<ReplayPolicy> policy_;
  ReplayRun result_;
  std::vector<State> states_;
  std::vector<FailingNode> nodes_;
  std::set<std::pair<WallTime, std::size_t>> node_events_;
  std::set<std::pair<WallTime, JobIndex>> finishes_;
  std::set<std::pair<std::int32_t, JobIndex>> waiting_;  // by priority, then age
  std::map<std::string, Share, std::less<>> queues_;
  std::vector<std::int64_t> used_by_queue_;
  std::size_t submitted_ = 0;
  std::size_t ended_ = 0;
  std::int64_t used_ = 0;
  std::int64_t working_ = 0;
  WallTime now_;
  WallTime moved_;  // when a job was submitted, started or ended last
};

}  // namespace

absl::StatusOr<Workload> MakeWorkload(const Trace& trace, const ReplayFleet& fleet) {
  Workload workload;
  workload.start = trace.start;
  workload.queues = trace.queues;
  ClusterState empty;
  for (NodeFacts& node : NodesOf(fleet)) empty.PutNode(std::move(node));
  Planner planner;
  struct Kind {
    std::uint32_t number = 0;
    bool fits = false;
  };
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, Kind> kinds;
  for (const TraceJob& job : trace.jobs) {
    if (job.chips.value_or(0) > fleet.chips()) {
      ++workload.too_large;
      continue;
    }
    TAHOMA_ASSIGN_OR_RETURN(ReplayJob request, RequestOf(job, workload.jobs.size(), trace.start));
    const auto [known, is_new] = kinds.try_emplace({job.shape, job.chips.value_or(0), job.slices});
    if (is_new) {
      known->second.number = static_cast<std::uint32_t>(kinds.size());
      known->second.fits = planner.Plan(empty, {request.spec}, trace.start, Explaining::kNone)
                               .front()
                               .placement.has_value();
    }
    if (!known->second.fits) {
      ++workload.too_large;
      continue;
    }
    request.kind = known->second.number;
    workload.jobs.push_back(job);
    workload.requests.push_back(std::move(request));
  }
  if (workload.jobs.empty()) {
    return InvalidArgument("none of the {} jobs fits the fleet ({}); take a larger fleet",
                           trace.jobs.size(), fleet.Describe());
  }
  return workload;
}

ReplayRun Replay(const Workload& workload, const ReplayFleet& fleet, const ReplayOptions& options,
                 absl::FunctionRef<void(const ReplayProgress&)> progress) {
  return Run(workload, fleet, options).Go(progress);
}

}  // namespace tahoma::controller

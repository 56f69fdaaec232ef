#include "sim-node/emulator/collective/domains/task_order.h"

#include <absl/functional/function_ref.h>

#include <algorithm>
#include <queue>

#include "lib/base/check.h"

namespace tahoma::sim {
namespace {

// Priorities are in quarters of a step, for resources that do a task in a part of one. The chain
// after a task counts so many times as much as its group's place among all.
constexpr std::uint64_t kStep = 4;
constexpr std::uint64_t kChain = 4;

using Priorities = std::vector<std::uint64_t>;  // by task

// The tasks that follow each other one.
class Neighbours {
 public:
  Neighbours(const TaskGraph& graph, bool backwards) : first_(graph.tasks.size() + 1) {
    for (const auto& [before, after] : graph.precedes) ++first_[(backwards ? after : before) + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    all_.resize(graph.precedes.size());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (const auto& [before, after] : graph.precedes) {
      all_[next[backwards ? after : before]++] = backwards ? before : after;
    }
  }
  std::vector<std::uint32_t>::const_iterator begin(std::uint32_t task) const {
    return all_.begin() + first_[task];
  }
  std::uint32_t Count(std::uint32_t task) const { return first_[task + 1] - first_[task]; }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> all_;
};

// One pass through all tasks, forwards or backwards in time: backwards, tasks wait for those that
// they precede.
class Pass {
 public:
  Pass(const TaskGraph& graph, const Neighbours& after, const Neighbours& before, bool backwards)
      : graph_(graph),
        after_(after),
        backwards_(backwards),
        resources_(graph.budgets.size()),
        may_begin_(graph.tasks.size()) {
    for (std::uint32_t task = 0; task < graph.tasks.size(); ++task) {
      waits_for_.push_back(before.Count(task));
    }
  }

  void Run(const Priorities& priorities, absl::FunctionRef<void(const TaskPart&)> visit) {
    priorities_ = &priorities;
    for (std::uint32_t task = 0; task < waits_for_.size(); ++task) {
      if (waits_for_[task] == 0) Plan(task);
    }
    std::vector<std::uint32_t> ended;
    for (std::uint32_t step = 0; step < due_.size() || working_ > 0; ++step) {
      BeginDue(step);
      ended.clear();
      for (std::uint32_t resource = 0; resource < resources_.size(); ++resource) {
        DoStep(resource, step, ended, visit);
      }
      for (const std::uint32_t task : ended) End(task, step + 1);
    }
    TAHOMA_CHECK(done_ == waits_for_.size());  // there is no cycle
  }

 private:
  // The most urgent task first, then the earliest.
  struct Urgency {
    std::uint64_t priority = 0;
    std::uint32_t task = 0;
    friend bool operator<(const Urgency& a, const Urgency& b) {
      return a.priority != b.priority ? a.priority < b.priority : a.task > b.task;
    }
  };
  struct Resource {
    std::priority_queue<Urgency> ready;
    bool busy = false;
    std::uint32_t current = 0;
    std::uint64_t done = 0;  // of the current one
  };

  void Plan(std::uint32_t task) {
    const std::uint32_t step = may_begin_[task];
    if (due_.size() <= step) due_.resize(std::size_t{step} + 1);
    due_[step].push_back(task);
  }

  // Tasks without work end at once, which may let others begin in this step.
  void BeginDue(std::uint32_t step) {
    for (std::size_t i = 0; step < due_.size() && i < due_[step].size(); ++i) {
      const std::uint32_t task = due_[step][i];
      if (graph_.tasks[task].work == 0) {
        End(task, step);
      } else {
        resources_[graph_.tasks[task].resource].ready.push({(*priorities_)[task], task});
        ++working_;
      }
    }
  }

  void End(std::uint32_t task, std::uint32_t step) {
    ++done_;
    if (graph_.tasks[task].work > 0) --working_;
    auto next = after_.begin(task);
    for (std::uint32_t i = 0; i < after_.Count(task); ++i, ++next) {
      const std::uint32_t delay = graph_.tasks[backwards_ ? *next : task].delay;
      may_begin_[*next] = std::max(may_begin_[*next], step + delay);
      if (--waits_for_[*next] == 0) Plan(*next);
    }
  }

  void DoStep(std::uint32_t index, std::uint32_t step, std::vector<std::uint32_t>& ended,
              absl::FunctionRef<void(const TaskPart&)> visit) {
    Resource& resource = resources_[index];
    std::uint64_t budget = graph_.budgets[index];
    while (budget > 0) {
      if (!resource.busy) {
        if (resource.ready.empty()) return;
        resource.busy = true;
        resource.current = resource.ready.top().task;
        resource.done = 0;
        resource.ready.pop();
      }
      const std::uint64_t work = graph_.tasks[resource.current].work;
      const std::uint64_t part = std::min(budget, work - resource.done);
      visit({.task = resource.current,
             .step = step,
             .begin = resource.done,
             .end = resource.done + part});
      resource.done += part;
      budget -= part;
      if (resource.done < work) return;
      ended.push_back(resource.current);
      resource.busy = false;
    }
  }

  const TaskGraph& graph_;
  const Neighbours& after_;
  const bool backwards_;
  std::vector<Resource> resources_;
  std::vector<std::uint32_t> waits_for_;
  std::vector<std::uint32_t> may_begin_;         // by task: not before this step
  std::vector<std::vector<std::uint32_t>> due_;  // by step
  const Priorities* priorities_ = nullptr;
  std::size_t working_ = 0;  // tasks that are ready or begun
  std::size_t done_ = 0;
};

// The steps that the fullest resource needs.
std::uint64_t LeastSteps(const TaskGraph& graph) {
  std::vector<std::uint64_t> work(graph.budgets.size());
  for (const TaskGraph::Task& task : graph.tasks) {
    if (task.work > 0) work[task.resource] += task.work;
  }
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < work.size(); ++i) {
    most = std::max(most, (work[i] + graph.budgets[i] - 1) / graph.budgets[i]);
  }
  return most;
}

// By the chain of tasks that a task begins, and how late its group is among all.
Priorities FirstPriorities(const TaskGraph& graph, const Neighbours& after,
                           const Neighbours& before) {
  std::vector<std::uint64_t> chain(graph.tasks.size());
  std::vector<std::uint32_t> left;
  std::vector<std::uint32_t> order;
  std::uint32_t groups = 1;
  for (std::uint32_t task = 0; task < graph.tasks.size(); ++task) {
    left.push_back(after.Count(task));
    if (left[task] == 0) order.push_back(task);
    groups = std::max(groups, graph.tasks[task].group + 1);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t task = order[i];
    const TaskGraph::Task& one = graph.tasks[task];
    if (one.work > 0) {
      chain[task] += std::max(kStep, kStep * one.work / graph.budgets[one.resource]);
    }
    auto next = before.begin(task);
    for (std::uint32_t j = 0; j < before.Count(task); ++j, ++next) {
      const std::uint64_t delay = kStep * graph.tasks[*next].delay;
      chain[*next] = std::max(chain[*next], chain[task] + delay);
      if (--left[*next] == 0) order.push_back(*next);
    }
  }
  const std::uint64_t steps = kStep * LeastSteps(graph);
  Priorities priorities;
  for (std::size_t task = 0; task < chain.size(); ++task) {
    const std::uint64_t earlier = groups - graph.tasks[task].group;
    priorities.push_back(kChain * chain[task] + steps * earlier / groups);
  }
  return priorities;
}

}  // namespace

std::vector<TaskPart> OrderTasks(const TaskGraph& graph) {
  const Neighbours after(graph, /*backwards=*/false);
  const Neighbours before(graph, /*backwards=*/true);
  const auto ends_of = [&](bool backwards, const Priorities& priorities) {
    Priorities ends(graph.tasks.size());
    Pass(graph, backwards ? before : after, backwards ? after : before, backwards)
        .Run(priorities, [&](const TaskPart& part) { ends[part.task] = part.step; });
    return ends;
  };
  const Priorities forwards = ends_of(false, FirstPriorities(graph, after, before));
  const Priorities backwards = ends_of(true, forwards);
  std::vector<TaskPart> parts;
  Pass(graph, after, before, false).Run(backwards, [&](const TaskPart& part) {
    parts.push_back(part);
  });
  return parts;
}

}  // namespace tahoma::sim

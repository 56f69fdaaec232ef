// Orders tasks on resources that each do so much in a step, such that all are done in few steps.
//
//   TaskGraph graph{.budgets = {2}};               // one link, two units of work a step
//   graph.tasks = {{.resource = 0, .work = 3}, {.resource = 0, .work = 1}};
//   graph.precedes = {{0, 1}};
//   OrderTasks(graph);          // {0, step 0, [0, 2)}, {0, step 1, [2, 3)}, {1, step 2, [0, 1)}
//
// Which task is done first is decided step by step: of those that may be done, first the ones that
// have the longest chain of others after them, and of these the earlier groups. The order is then
// improved backwards and forwards, as tree_flow.h does it (Li and Willis 1992).
//
// Thread safety: values and pure functions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace tahoma::sim {

struct TaskGraph {
  static constexpr std::uint32_t kNoResource = std::numeric_limits<std::uint32_t>::max();

  struct Task {
    std::uint32_t resource = kNoResource;  // without one there is no work
    std::uint64_t work = 0;
    std::uint32_t delay = 0;  // the steps after its end until those after it may begin
    std::uint32_t group = 0;  // earlier groups go first
  };

  std::vector<std::uint64_t> budgets = {};  // by resource: the work of a step, at least 1
  std::vector<Task> tasks = {};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> precedes = {};  // without cycles
};

// A part of a task that its resource does in one step.
struct TaskPart {
  std::uint32_t task = 0;
  std::uint32_t step = 0;
  std::uint64_t begin = 0;  // of its work
  std::uint64_t end = 0;
  friend bool operator==(const TaskPart&, const TaskPart&) = default;
};

// Returns the parts of all tasks that have work, in the order of their steps.
std::vector<TaskPart> OrderTasks(const TaskGraph& graph);

}  // namespace tahoma::sim

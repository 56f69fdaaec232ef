// Tasks on resources: that each is done once, by no more than its resource can do in a step, after
// those that precede it, and that all together take little more than the fullest resource.

#include "sim-node/emulator/collective/domains/task_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::sim {
namespace {

constexpr std::uint32_t kNone = TaskGraph::kNoResource;

// Tasks that wait for earlier ones only.
TaskGraph RandomGraph(Rng& rng) {
  TaskGraph graph;
  for (std::uint64_t i = 1 + rng.Below(4); i > 0; --i) graph.budgets.push_back(1 + rng.Below(5));
  const auto tasks = static_cast<std::uint32_t>(1 + rng.Below(40));
  for (std::uint32_t task = 0; task < tasks; ++task) {
    TaskGraph::Task made{.group = task / 4};
    if (rng.Below(5) > 0) {
      made.resource = static_cast<std::uint32_t>(rng.Below(graph.budgets.size()));
      made.work = 1 + rng.Below(7);
      made.delay = static_cast<std::uint32_t>(rng.Below(3));
    }
    graph.tasks.push_back(made);
    for (std::uint64_t i = rng.Below(3); task > 0 && i > 0; --i) {
      graph.precedes.emplace_back(static_cast<std::uint32_t>(rng.Below(task)), task);
    }
  }
  return graph;
}

// When each task may be followed: the step after its last one and its delay. Tasks without work are
// done when those before them are. Tasks must be in an order in which none precedes earlier ones.
std::vector<std::uint32_t> FollowedFrom(const TaskGraph& graph,
                                        const std::vector<TaskPart>& parts) {
  std::vector<std::uint32_t> from(graph.tasks.size());
  for (const TaskPart& part : parts) {
    from[part.task] = part.step + 1 + graph.tasks[part.task].delay;
  }
  for (std::uint32_t task = 0; task < from.size(); ++task) {
    if (graph.tasks[task].work > 0) continue;
    for (const auto& [before, after] : graph.precedes) {
      if (after == task) from[task] = std::max(from[task], from[before]);
    }
  }
  return from;
}

TEST(TaskOrderTest, EachTaskIsDoneOnceInParts) {
  Rng rng(1);
  for (int round = 0; round < 300; ++round) {
    const TaskGraph graph = RandomGraph(rng);
    std::vector<std::uint64_t> done(graph.tasks.size());
    for (const TaskPart& part : OrderTasks(graph)) {
      EXPECT_EQ(part.begin, done[part.task]);
      EXPECT_LT(part.begin, part.end);
      done[part.task] = part.end;
    }
    for (std::size_t task = 0; task < done.size(); ++task) {
      EXPECT_EQ(done[task], graph.tasks[task].work);
    }
  }
}

TEST(TaskOrderTest, NoResourceDoesMoreInAStepThanItCan) {
  Rng rng(2);
  for (int round = 0; round < 300; ++round) {
    const TaskGraph graph = RandomGraph(rng);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> work;  // resource and step
    std::uint32_t step = 0;
    for (const TaskPart& part : OrderTasks(graph)) {
      EXPECT_GE(part.step, step);
      step = part.step;
      work[{graph.tasks[part.task].resource, step}] += part.end - part.begin;
    }
    for (const auto& [place, done] : work) EXPECT_LE(done, graph.budgets[place.first]);
  }
}

TEST(TaskOrderTest, NoTaskBeginsBeforeThoseThatPrecedeItAndTheirDelay) {
  Rng rng(3);
  for (int round = 0; round < 300; ++round) {
    const TaskGraph graph = RandomGraph(rng);
    const std::vector<TaskPart> parts = OrderTasks(graph);
    const std::vector<std::uint32_t> from = FollowedFrom(graph, parts);
    for (const TaskPart& part : parts) {
      for (const auto& [before, after] : graph.precedes) {
        if (after == part.task) {
          EXPECT_GE(part.step, from[before]);
        }
      }
    }
  }
}

TEST(TaskOrderTest, TheLongestChainGoesFirst) {
  TaskGraph graph{.budgets = {1, 1}, .tasks = {}, .precedes = {{1, 2}}};
  graph.tasks = {
      {.resource = 0, .work = 1}, {.resource = 0, .work = 1}, {.resource = 1, .work = 3}};
  const std::vector<TaskPart> parts = OrderTasks(graph);
  EXPECT_EQ(parts.front(), (TaskPart{.task = 1, .step = 0, .begin = 0, .end = 1}));
  EXPECT_EQ(parts.back().step, 3U);
}

TEST(TaskOrderTest, AResourceTakesTheNextTaskInTheSameStep) {
  TaskGraph graph{.budgets = {2}, .tasks = {}, .precedes = {{0, 1}}};
  graph.tasks = {
      {.resource = 0, .work = 3}, {.resource = 0, .work = 1}, {.resource = 0, .work = 1}};
  const std::vector<TaskPart> expected = {{.task = 0, .step = 0, .begin = 0, .end = 2},
                                          {.task = 0, .step = 1, .begin = 2, .end = 3},
                                          {.task = 2, .step = 1, .begin = 0, .end = 1},
                                          {.task = 1, .step = 2, .begin = 0, .end = 1}};
  EXPECT_EQ(OrderTasks(graph), expected);
}

TEST(TaskOrderTest, TasksWithoutWorkTakeNoTime) {
  TaskGraph graph{.budgets = {1}, .tasks = {}, .precedes = {{0, 1}, {1, 2}, {2, 3}}};
  graph.tasks = {{.resource = 0, .work = 1},
                 {.resource = kNone},
                 {.resource = kNone},
                 {.resource = 0, .work = 1}};
  EXPECT_EQ(OrderTasks(graph).back().step, 1U);
}

// Two chains that share a resource in the middle, as pieces share a link.
TEST(TaskOrderTest, ManyPiecesTakeLittleMoreThanTheFullestResource) {
  constexpr std::uint32_t kPieces = 100;
  TaskGraph graph{.budgets = {1, 1, 1}, .tasks = {}, .precedes = {}};
  for (std::uint32_t piece = 0; piece < kPieces; ++piece) {
    for (std::uint32_t resource = 0; resource < 3; ++resource) {
      graph.tasks.push_back({.resource = resource, .work = 1, .delay = 2, .group = piece});
      if (resource > 0) graph.precedes.emplace_back(3 * piece + resource - 1, 3 * piece + resource);
    }
  }
  EXPECT_LE(OrderTasks(graph).back().step + 1, kPieces + 2 * (1 + 2));
}

TEST(TaskOrderDeathTest, ACycleIsAMistake) {
  TaskGraph graph{.budgets = {1}, .tasks = {}, .precedes = {{0, 1}, {1, 0}}};
  graph.tasks = {{.resource = 0, .work = 1}, {.resource = 0, .work = 1}};
  EXPECT_DEATH(OrderTasks(graph), "done_");
}

}  // namespace
}  // namespace tahoma::sim

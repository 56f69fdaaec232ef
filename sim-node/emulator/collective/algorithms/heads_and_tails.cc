#include "sim-node/emulator/collective/algorithms/heads_and_tails.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>

#include "lib/base/check.h"
#include "sim-node/emulator/collective/algorithms/tree_order.h"

namespace tahoma::sim {
namespace {

// Slow links carry half a piece in a step, so this is the finest that makes a difference.
constexpr double kFraction = 0.5;
// Where links take so many times as long as they are busy, other shares change little.
constexpr double kWaitsMost = 1.25;
// The most numbers of steps that are tried each time, the least first.
constexpr double kTriesMost = 12;
// How often cables are exchanged: each time, other links may wait.
constexpr int kRounds = 3;
// How much higher a tree may become for a root that is nearer to a chip with few cables.
constexpr std::size_t kRootHigherMost = 1;
// Links that take nearly as long as the one that takes the longest: by so many steps less.
constexpr double kNearly = 2.5;

// A piece on a link.
struct Task {
  std::size_t head = 0;
  std::size_t tail = 0;
};

// Calls visit(tree, link, task) for every piece on every link, numbered as in StepsOfLinks.
template <typename Visit>
void ForEachTask(const TreePacking& packing, const Visit& visit) {
  for (std::size_t number = 0; number < packing.trees().size(); ++number) {
    const TreePacking::Tree& tree = packing.trees()[number];
    std::array<std::size_t, 64> below{};  // links from each chip to the farthest below it
    for (std::size_t i = tree.size(); i-- > 0;) {
      std::size_t& height = below.at(tree[i].parent);
      height = std::max(height, below.at(tree[i].chip) + 1);
    }
    const std::size_t height = tree.back().depth;
    for (const TreePacking::Branch& branch : tree) {
      const std::size_t back = packing.cables()[branch.cable].one == branch.chip ? 0 : 1;
      const std::size_t under = below.at(branch.chip);
      const std::size_t beyond = height + branch.depth - 1;
      visit(number, 2 * branch.cable + back, Task{.head = under, .tail = beyond});
      visit(number, 2 * branch.cable + 1 - back, Task{.head = beyond, .tail = under});
    }
  }
}

double StepsOfPiece(const TreePacking& packing, std::size_t link, std::uint64_t grain) {
  const TreePacking::Cable& cable = packing.cables()[link / 2];
  return static_cast<double>(packing.fastest()) / static_cast<double>(cable.rate * grain);
}

// Of the tasks with a head and a tail of so many steps or more, all lie between the two.
LinkSteps StepsOf(std::vector<Task> tasks, double length) {
  LinkSteps steps{.busy = length * static_cast<double>(tasks.size())};
  std::ranges::sort(tasks, [](const Task& a, const Task& b) { return a.head > b.head; });
  std::vector<std::size_t> of_tail;  // how many of those with the longest heads
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto& [head, tail] = tasks[i];
    if (of_tail.size() <= tail) of_tail.resize(tail + 1);
    ++of_tail[tail];
    if (i + 1 < tasks.size() && tasks[i + 1].head == head) continue;
    std::size_t count = 0;
    for (std::size_t least = of_tail.size(); least-- > 0;) {
      count += of_tail[least];
      if (count == 0) continue;
      steps.least = std::max(
          steps.least, static_cast<double>(head + least) + length * static_cast<double>(count));
    }
  }
  return steps;
}

double Least(const std::vector<LinkSteps>& of_links) {
  return std::ranges::max_element(of_links, {}, &LinkSteps::least)->least;
}
double Busy(const std::vector<LinkSteps>& of_links) {
  return std::ranges::max_element(of_links, {}, &LinkSteps::busy)->busy;
}

// The trees that each cable may carry for all to take no more than so many steps, if they wait for
// as long as now.
std::vector<std::uint64_t> TreesWithin(double steps, const TreePacking& packing,
                                       const std::vector<LinkSteps>& of_links,
                                       std::uint64_t grain) {
  std::vector<std::uint64_t> most;
  for (std::size_t cable = 0; cable < packing.cables().size(); ++cable) {
    const LinkSteps& there = of_links[2 * cable];
    const LinkSteps& back = of_links[2 * cable + 1];
    const double waits = std::max(there.least - there.busy, back.least - back.busy);
    const double trees = std::max(0.0, steps - waits) / StepsOfPiece(packing, 2 * cable, grain);
    most.push_back(static_cast<std::uint64_t>(trees + 1e-6));
  }
  return most;
}

bool IsWithin(const TreePacking& packing, const std::vector<std::uint64_t>& most) {
  for (std::size_t cable = 0; cable < most.size(); ++cable) {
    if (packing.cables()[cable].trees > most[cable]) return false;
  }
  return true;
}

// Lets links that wait carry fewer trees; false when no others can carry more. Keeps the steps of
// the packing's links.
bool Level(TreePacking& packing, std::vector<LinkSteps>& of_links, std::uint64_t grain) {
  const double busy = Busy(of_links);
  const double least = Least(of_links);
  if (least > busy * kWaitsMost) return false;
  const double more = std::max(kFraction, (least - busy) / kTriesMost);
  for (double steps = busy + more; steps < least; steps += more) {
    const std::vector<std::uint64_t> most = TreesWithin(steps, packing, of_links, grain);
    if (!packing.CanCarry(most)) continue;
    TreePacking changed = packing.Exchanged(most);
    if (!IsWithin(changed, most)) continue;
    std::vector<LinkSteps> after = StepsOfLinks(changed, grain);
    if (Least(after) >= least) continue;
    packing = std::move(changed);
    of_links = std::move(after);
    return true;
  }
  return false;
}

// By chip, how far away these cables are from it in the tree, together.
std::vector<std::size_t> Distances(const TreePacking::Tree& tree, const std::vector<bool>& cables) {
  std::array<std::size_t, 64> below{};  // how many of the cables
  std::size_t all = 0;
  std::size_t from_root = 0;
  for (std::size_t i = tree.size(); i-- > 0;) {
    const std::size_t here = cables[tree[i].cable] ? 1 : 0;
    all += here;
    from_root += here * tree[i].depth;
    below.at(tree[i].parent) += below.at(tree[i].chip) + here;
  }
  std::vector<std::size_t> distances(tree.size() + 1);
  distances[tree.front().parent] = from_root;
  for (const TreePacking::Branch& branch : tree) {
    const std::size_t nearer = below.at(branch.chip);
    const std::size_t same = cables[branch.cable] ? 1 : 0;
    distances[branch.chip] = distances[branch.parent] + (all - nearer - same) - nearer;
  }
  return distances;
}

// Whether each link takes nearly as many steps as the one that takes the most, and carries as much.
std::vector<bool> LongestLinks(const std::vector<LinkSteps>& of_links) {
  const double least = Least(of_links);
  const double busy = Busy(of_links);
  std::vector<bool> longest;
  for (const LinkSteps& link : of_links) {
    longest.push_back(link.least > least - kNearly && link.busy > busy - 1);
  }
  return longest;
}

// Moves the roots of trees nearer to the cables that take the longest.
TreePacking WithNearRoots(TreePacking packing, const std::vector<LinkSteps>& of_links) {
  const std::vector<bool> links = LongestLinks(of_links);
  std::vector<bool> longest;  // cables
  for (std::size_t i = 0; i < links.size(); i += 2) longest.push_back(links[i] || links[i + 1]);
  for (std::size_t tree = 0; tree < packing.trees().size(); ++tree) {
    const std::vector<std::size_t> heights = packing.HeightsOf(tree);
    const std::vector<std::size_t> distances = Distances(packing.trees()[tree], longest);
    const std::size_t highest = *std::ranges::min_element(heights) + kRootHigherMost;
    std::size_t best = packing.trees()[tree].front().parent;
    for (std::size_t root = 0; root < heights.size(); ++root) {
      if (heights[root] > highest) continue;
      if (std::pair(distances[root], heights[root]) < std::pair(distances[best], heights[best])) {
        best = root;
      }
    }
    if (best != packing.trees()[tree].front().parent) packing.SetRoot(tree, best);
  }
  return packing;
}

// By tree, how much longer its heads are than the shortest, on those links that take the longest
// and have to wait. Its tails are the same, on the links back.
std::vector<std::size_t> LatenessOf(const TreePacking& packing,
                                    const std::vector<LinkSteps>& of_links) {
  const std::vector<bool> longest = LongestLinks(of_links);
  std::vector<std::size_t> least(longest.size(), std::numeric_limits<std::size_t>::max());
  ForEachTask(packing, [&](std::size_t, std::size_t link, Task task) {
    least[link] = std::min(least[link], task.head);
  });
  std::vector<std::size_t> lateness(packing.trees().size());
  ForEachTask(packing, [&](std::size_t tree, std::size_t link, Task task) {
    if (longest[link] && least[link] > 1) lateness[tree] += task.head - least[link];
  });
  return lateness;
}

}  // namespace

std::vector<LinkSteps> StepsOfLinks(const TreePacking& packing, std::uint64_t grain) {
  TAHOMA_CHECK(grain > 0);
  std::vector<std::vector<Task>> all(2 * packing.cables().size());
  ForEachTask(packing,
              [&](std::size_t, std::size_t link, Task task) { all[link].push_back(task); });
  std::vector<LinkSteps> of_links;
  for (std::vector<Task>& tasks : all) {
    of_links.push_back(StepsOf(std::move(tasks), StepsOfPiece(packing, of_links.size(), grain)));
  }
  return of_links;
}

TreePacking ShortenWaits(TreePacking packing, std::uint64_t grain) {
  std::vector<LinkSteps> of_links = StepsOfLinks(packing, grain);
  for (int round = 0; round < kRounds && Level(packing, of_links, grain); ++round) {
  }
  TreePacking near = WithNearRoots(packing, of_links);
  std::vector<LinkSteps> of_near = StepsOfLinks(near, grain);
  if (Least(of_near) <= Least(of_links)) {
    packing = std::move(near);
    of_links = std::move(of_near);
  }
  packing.Arrange(EvenOrder(packing, LatenessOf(packing, of_links)));
  return packing;
}

}  // namespace tahoma::sim

// Heads and tails of the pieces on a link, against orders of one machine that are found step by
// step, and packings in which links wait for less.

#include "sim-node/emulator/collective/algorithms/heads_and_tails.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "lib/base/rng.h"
#include "sim-node/emulator/collective/algorithms/tree_flow.h"
#include "sim-node/emulator/collective/plan/plan.h"
#include "tests/unit/sim-node/emulator/collective/algorithms/packings.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::ExpectSpanningTrees;
using testing::Instance;
using testing::Packed;
using testing::SlowCable;
using testing::UltraServer;
using torus::ChipMask;

// Chips 37, 42, 43, 44, 50 and 55 are dead: all that 32 others sum up must leave them over slow
// cables.
constexpr ChipMask kHalfIsHealthy = kAllChips & ~(ChipMask{0b111} << 42 | ChipMask{1} << 37 |
                                                  ChipMask{1} << 50 | ChipMask{1} << 55);

double Least(const TreePacking& packing, std::uint64_t grain) {
  const auto of_links = StepsOfLinks(packing, grain);
  return std::ranges::max_element(of_links, {}, &LinkSteps::least)->least;
}

// A task of a link: from the first step in which it may be done to the steps that must follow it.
struct Task {
  std::size_t head = 0;
  std::size_t tail = 0;
};

// The tasks of the link from `from` to `to`, found by walking each tree from every chip.
std::vector<Task> TasksOf(const TreePacking& packing, std::size_t from, std::size_t to) {
  std::vector<Task> tasks;
  for (const TreePacking::Tree& tree : packing.trees()) {
    std::vector<std::size_t> parent(packing.chips().size());
    const std::size_t root = tree.front().parent;
    parent[root] = root;
    for (const TreePacking::Branch& branch : tree) parent[branch.chip] = branch.parent;
    const auto depth = [&](std::size_t chip) {
      std::size_t links = 0;
      for (; chip != root; chip = parent[chip]) ++links;
      return links;
    };
    // From a chip to the farthest of those that reach the root through it.
    const auto below = [&](std::size_t top) {
      std::size_t farthest = 0;
      for (std::size_t chip = 0; chip < parent.size(); ++chip) {
        std::size_t at = chip;
        while (at != top && at != root) at = parent[at];
        if (at == top) farthest = std::max(farthest, depth(chip) - depth(top));
      }
      return farthest;
    };
    if (from != root && parent[from] == to) {
      tasks.push_back({.head = below(from), .tail = depth(to) + below(root)});
    }
    if (to != root && parent[to] == from) {
      tasks.push_back({.head = below(root) + depth(from), .tail = below(to)});
    }
  }
  return tasks;
}

// How long one machine takes for tasks of one step each: in every step, of those that may be done,
// that with the longest tail. No order is better, as no task is begun in the middle of another.
std::size_t BestOrder(std::vector<Task> tasks) {
  std::size_t end = 0;
  for (std::size_t step = 0; !tasks.empty(); ++step) {
    auto best = tasks.end();
    for (auto task = tasks.begin(); task != tasks.end(); ++task) {
      if (task->head > step || (best != tasks.end() && task->tail <= best->tail)) continue;
      best = task;
    }
    if (best == tasks.end()) continue;
    end = std::max(end, step + 1 + best->tail);
    tasks.erase(best);
  }
  return end;
}

TEST(HeadsAndTailsTest, ALinkTakesAsLongAsTheBestOrderOfItsPieces) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Rng rng(seed);
    ChipMask mask = 0xffff;
    for (std::uint64_t i = rng.Below(5); i > 0; --i) mask &= ~(ChipMask{1} << rng.Below(16));
    const TorusLinks links = Instance();  // all are as fast as the fastest
    if (!SetOf(MembersOf(mask), links).hangs_together()) continue;
    const TreePacking packing = Packed(mask, links, 3 + rng.Below(30));
    const std::vector<LinkSteps> of_links = StepsOfLinks(packing, /*grain=*/1);
    ASSERT_EQ(of_links.size(), 2 * packing.cables().size());
    for (std::size_t link = 0; link < of_links.size(); ++link) {
      const TreePacking::Cable& cable = packing.cables()[link / 2];
      const auto tasks = link % 2 == 0 ? TasksOf(packing, cable.one, cable.other)
                                       : TasksOf(packing, cable.other, cable.one);
      EXPECT_EQ(of_links[link].busy, static_cast<double>(tasks.size()));
      EXPECT_EQ(of_links[link].least, static_cast<double>(BestOrder(tasks))) << "seed " << seed;
    }
  }
}

// A slow link takes two steps for a piece when the fastest takes one, and one of two pieces.
TEST(HeadsAndTailsTest, SlowLinksTakeLongerAndCoarserStepsAreFewer) {
  const TreePacking packing = Packed(kAllChips, UltraServer(), 64);
  const auto fine = StepsOfLinks(packing, 1);
  const auto coarse = StepsOfLinks(packing, 4);
  for (std::size_t link = 0; link < fine.size(); ++link) {
    const TreePacking::Cable& cable = packing.cables()[link / 2];
    const std::uint64_t steps = cable.trees * packing.fastest() / cable.rate;
    EXPECT_EQ(fine[link].busy, static_cast<double>(steps));
    EXPECT_EQ(coarse[link].busy * 4, static_cast<double>(steps));
    EXPECT_GE(fine[link].least, fine[link].busy);
    EXPECT_LE(coarse[link].least, fine[link].least);
  }
}

TEST(HeadsAndTailsTest, LinksThatWaitCarryFewerTreesAndTheOthersAFewMore) {
  const TreePacking packing = Packed(kHalfIsHealthy, UltraServer(), 472);
  const TreePacking changed = ShortenWaits(packing, 2);
  ExpectSpanningTrees(changed);
  EXPECT_EQ(changed.trees().size(), packing.trees().size());
  EXPECT_LE(Least(changed, 2) + 3, Least(packing, 2));
  EXPECT_LE(TreeFlow(changed, 2, 40).step_count() + 2, TreeFlow(packing, 2, 40).step_count());
}

// Chip 56 has one fast cable and two slow ones, and each tree must use one of them.
TEST(HeadsAndTailsTest, RootsAreNearToAChipWithFewCables) {
  const ChipMask dead = ChipMask{1} | ChipMask{1} << 22 | ChipMask{1} << 24 | ChipMask{1} << 50 |
                        ChipMask{1} << 52 | ChipMask{1} << 59 | ChipMask{1} << 60;
  const TreePacking packing = Packed(kAllChips & ~dead, UltraServer(), 496);
  const auto weak = std::ranges::find(packing.chips(), torus::ChipIndex(56));
  ASSERT_NE(weak, packing.chips().end());
  const auto place = static_cast<std::size_t>(weak - packing.chips().begin());
  const auto distance = [&](const TreePacking& trees) {
    std::size_t sum = 0;
    for (const TreePacking::Tree& tree : trees.trees()) {
      for (const TreePacking::Branch& branch : tree) sum += branch.chip == place ? branch.depth : 0;
    }
    return sum;
  };
  const TreePacking changed = ShortenWaits(packing, 2);
  ExpectSpanningTrees(changed);
  EXPECT_LE(distance(changed) * 4, distance(packing) * 3);
  EXPECT_LE(Least(changed, 2), Least(packing, 2));
}

TEST(HeadsAndTailsTest, NoPackingTakesMoreStepsThanBefore) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Rng rng(seed);
    TorusLinks links = UltraServer();
    ChipMask mask = kAllChips;
    for (std::uint64_t i = rng.Below(30); i > 0; --i) mask &= ~(ChipMask{1} << rng.Below(64));
    for (std::uint64_t i = rng.Below(4); i > 0; --i) {
      SlowCable(links, static_cast<int>(rng.Below(64)), torus::kAxes.at(rng.Below(3)),
                static_cast<std::uint16_t>(rng.Below(3) * 500));
    }
    if (!SetOf(MembersOf(mask), links).hangs_together()) continue;
    const TreePacking packing = Packed(mask, links, 40);
    const std::uint64_t grain = 1 + rng.Below(3);
    const TreePacking changed = ShortenWaits(packing, grain);
    ExpectSpanningTrees(changed);
    EXPECT_LE(Least(changed, grain), Least(packing, grain)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tahoma::sim

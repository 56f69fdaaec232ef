// Pieces that flow along packed trees: their steps are an all-reduce, no link carries more in a
// step than its rate allows, and links are idle at the end only.

#include "sim-node/emulator/collective/algorithms/tree_flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim-node/emulator/collective/plan/plan.h"
#include "tests/unit/sim-node/emulator/collective/algorithms/packings.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::Packed;
using testing::SlowCable;
using testing::UltraServer;
using torus::Axis;
using torus::ChipIndex;
using torus::ChipMask;

constexpr ChipMask kSquareOfThree = 0x0777;

Layout WholeBuffer(std::uint64_t elements) {
  return {.element_bytes = 4, .bounds = {0, elements}, .fixed = false};
}

using Ends = std::pair<ChipIndex, ChipIndex>;

std::map<Ends, std::uint64_t> LoadsOf(const Step& step) {
  std::map<Ends, std::uint64_t> loads;
  for (const Send& send : step) loads[{send.from, send.to}] += send.bytes;
  return loads;
}

TEST(TreeFlowTest, BothDirectionsOfACableCarryTheSame) {
  const TreeFlow flow(Packed(kSquareOfThree, Instance(), 16), 1);
  std::map<Ends, std::uint64_t> all;
  for (const Step& step : flow.Steps(WholeBuffer(16 * 25))) {
    for (const auto& [ends, bytes] : LoadsOf(step)) all[ends] += bytes;
  }
  EXPECT_EQ(all.size(), 24U);
  for (const auto& [ends, bytes] : all) EXPECT_EQ(bytes, all.at({ends.second, ends.first}));
}

TEST(TreeFlowTest, AStepSendsNothingThatItReceivesAndSumsUpBeforeItSpreads) {
  TorusLinks links = Instance();
  SlowCable(links, 0, Axis::kX, 300);
  const TreeFlow flow(Packed(kSquareOfThree, links, 7), 2);
  const auto steps = flow.Steps(WholeBuffer(700));
  ASSERT_EQ(steps.size(), flow.step_count());
  for (const Step& step : steps) {
    EXPECT_TRUE(std::ranges::is_sorted(step, {}, &Send::action));
    for (const Send& one : step) {
      for (const Send& other : step) {
        const bool overlap =
            one.offset < other.to_offset + other.bytes && other.to_offset < one.offset + one.bytes;
        EXPECT_FALSE(one.from == other.to && overlap);
      }
    }
  }
}

TEST(TreeFlowTest, ALinkCarriesInAStepWhatItsRateAllows) {
  TorusLinks links = UltraServer();
  SlowCable(links, 5, Axis::kY, 300);
  constexpr std::uint64_t kElements = 1 << 20;
  const TreePacking packing = Packed(0x0fff'ffff, links, 64);
  for (const std::uint64_t grain : {1U, 3U}) {
    const TreeFlow flow(packing, grain);
    const std::uint64_t fastest =
        4 * kElements * grain / packing.trees().size();  // bytes in a step
    for (const Step& step : flow.Steps(WholeBuffer(kElements))) {
      for (const auto& [ends, bytes] : LoadsOf(step)) {
        const auto route = links.FindRoute(ends.first, ends.second, kAllChips);
        ASSERT_TRUE(route.ok());
        ASSERT_EQ(route->size(), 1U);
        const std::uint64_t most = fastest * links.capacity(route->front()) / 128'000'000'000;
        EXPECT_LE(bytes, most + 8 * grain);  // rounded to elements
      }
    }
  }
}

// The trees are six links high, so a piece takes twelve steps.
TEST(TreeFlowTest, LinksAreIdleForFewerStepsThanATreeIsHigh) {
  TorusLinks links = UltraServer();
  SlowCable(links, 0, Axis::kX, 0);
  const TreePacking packing = Packed(kAllChips, links, 256);
  std::uint64_t fullest = 0;
  for (const TreePacking::Cable& cable : packing.cables()) {
    fullest = std::max(fullest, cable.trees * packing.fastest() / cable.rate);
  }
  EXPECT_LE(TreeFlow(packing, 1).step_count(), fullest + 4);
  EXPECT_LE(TreeFlow(packing, 2).step_count(), fullest / 2 + 4);
}

// Chips 1 and 5 to 9 are dead: those that are left of their plane have a way of six links before
// anything comes back over its slow cables.
TEST(TreeFlowTest, MoreOrdersNeverCostSteps) {
  for (const ChipMask dead : {ChipMask{0}, ChipMask{0x0222}, ChipMask{0x03e2}}) {
    const TreePacking packing = Packed(kAllChips & ~dead, UltraServer(), 200);
    for (const std::uint64_t grain : {1U, 2U, 5U}) {
      std::size_t before = TreeFlow(packing, grain).step_count();
      for (const std::size_t orders : {1U, 8U, 20U}) {
        const std::size_t steps = TreeFlow(packing, grain, orders).step_count();
        EXPECT_LE(steps, before) << grain;
        before = steps;
      }
    }
  }
}

// Some links of these 60 chips mostly spread, so they wait for the first results.
TEST(TreeFlowTest, WhatTheLastLinksWaitForComesEarlierInOtherOrders) {
  const TreePacking packing = Packed(0xffff'ffff'febf'ef7f, UltraServer(), 484);
  const std::size_t first = TreeFlow(packing, 2).step_count();
  EXPECT_LE(TreeFlow(packing, 2, /*orders=*/40).step_count() + 3, first);
}

TEST(TreeFlowTest, EveryChipEndsWithTheSumInAnyCutting) {
  TorusLinks links = Instance();
  SlowCable(links, 1, Axis::kY, 400);
  const ChipSet set = SetOf(MembersOf(kSquareOfThree), links);
  for (const std::size_t pieces : {1U, 7U, 16U}) {
    const TreePacking packing = Packed(kSquareOfThree, links, pieces);
    for (const std::uint64_t grain : {1U, 3U, 8U}) {
      const TreeFlow flow(packing, grain, /*orders=*/grain % 2 * 4);
      Schedule schedule;
      schedule.stripes = 2;
      const Layout layout = WholeBuffer(101);  // leaves some parts empty
      const auto even = flow.Steps(layout, {.index = 0, .count = 2});
      const auto odd = flow.Steps(layout, {.index = 1, .count = 2});
      for (std::size_t i = 0; i < even.size(); ++i) {
        schedule.steps.push_back(even[i]);
        schedule.steps.push_back(odd[i]);
      }
      std::vector<std::vector<std::int32_t>> values(set.size(), std::vector<std::int32_t>(101));
      std::vector<ChipBuffer> buffers;
      for (std::size_t chip = 0; chip < set.size(); ++chip) {
        for (std::size_t i = 0; i < 101; ++i) {
          values[chip][i] = static_cast<std::int32_t>(i * 1000 + (1U << chip));
        }
        buffers.push_back(
            {.chip = set.chips()[chip], .bytes = std::as_writable_bytes(std::span(values[chip]))});
      }
      Execute(schedule, ElementType::kInt32, ReduceOp::kSum, buffers);
      for (const auto& result : values) {
        for (std::size_t i = 0; i < 101; ++i) {
          ASSERT_EQ(result[i], static_cast<std::int32_t>(9 * i * 1000 + 511)) << pieces << grain;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tahoma::sim

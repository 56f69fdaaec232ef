// Packed trees: each spans the set, all of them load the cables evenly, and their steps are an
// all-reduce that every chip may run with its links in both directions at once.

#include "sim-node/collective/algorithms/packing.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "sim-node/collective/plan/plan.h"
#include "tests/unit/sim-node/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using torus::ChipIndex;
using torus::ChipMask;

constexpr ChipMask kSquareOfThree = 0x0777;

Layout WholeBuffer(std::uint64_t elements) {
  return {.element_bytes = 4, .bounds = {0, elements}, .fixed = false};
}

// Bytes that cross each cable in each direction.
std::map<std::pair<ChipIndex, ChipIndex>, std::uint64_t> LoadsOf(const std::vector<Step>& steps) {
  std::map<std::pair<ChipIndex, ChipIndex>, std::uint64_t> loads;
  for (const Step& step : steps) {
    for (const Send& send : step) loads[{send.from, send.to}] += send.bytes;
  }
  return loads;
}

TEST(PackingTest, BothDirectionsOfACableCarryTheSame) {
  const TorusLinks links = Instance();
  const auto packing = TreePacking::Of(SetOf(MembersOf(kSquareOfThree), links), links, 16);
  ASSERT_TRUE(packing.has_value());
  const auto loads = LoadsOf(packing->Steps(4, WholeBuffer(16 * 4 * 25)));
  for (const auto& [ends, bytes] : loads) {
    EXPECT_EQ(bytes, loads.at({ends.second, ends.first}));
  }
}

// 8 of the 12 cables of a square of three are in a tree, so each carries at least two thirds.
TEST(PackingTest, ManyTreesLoadTheCablesOfASquareOfThreeEvenly) {
  const TorusLinks links = Instance();
  const auto packing = TreePacking::Of(SetOf(MembersOf(kSquareOfThree), links), links, 64);
  ASSERT_TRUE(packing.has_value());
  constexpr std::uint64_t kElements = 64 * 8 * 10;
  const auto loads = LoadsOf(packing->Steps(8, WholeBuffer(kElements)));
  EXPECT_EQ(loads.size(), 24U);
  for (const auto& [ends, bytes] : loads) {
    EXPECT_LE(static_cast<double>(bytes), 4.0 * kElements * 2 / 3 * 1.03);
  }
}

TEST(PackingTest, AStepSendsNothingThatItReceives) {
  const TorusLinks links = Instance();
  const auto packing = TreePacking::Of(SetOf(MembersOf(kSquareOfThree), links), links, 3);
  ASSERT_TRUE(packing.has_value());
  const auto steps = packing->Steps(5, WholeBuffer(3 * 5));
  EXPECT_EQ(steps.size(), packing->StepCount(5));
  for (const Step& step : steps) {
    for (const Send& one : step) {
      for (const Send& other : step) {
        const bool overlap =
            one.offset < other.to_offset + other.bytes && other.to_offset < one.offset + one.bytes;
        EXPECT_FALSE(one.from == other.to && overlap);
      }
    }
  }
}

TEST(PackingTest, EveryChipEndsWithTheSumInAnyCutting) {
  const TorusLinks links = Instance();
  const auto members = MembersOf(kSquareOfThree);
  const ChipSet set = SetOf(members, links);
  for (const std::size_t trees : {1U, 7U, 16U}) {
    const auto packing = TreePacking::Of(set, links, trees);
    ASSERT_TRUE(packing.has_value());
    for (const std::size_t chunks : {1U, 3U, 8U}) {
      Schedule schedule;
      schedule.stripes = 2;
      const Layout layout = WholeBuffer(101);  // leaves some parts empty
      const auto even = packing->Steps(chunks, layout, {.index = 0, .count = 2});
      const auto odd = packing->Steps(chunks, layout, {.index = 1, .count = 2});
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
          ASSERT_EQ(result[i], static_cast<std::int32_t>(9 * i * 1000 + 511)) << trees << chunks;
        }
      }
    }
  }
}

TEST(PackingTest, ThereAreNoTreesForWhoIsCutOff) {
  TorusLinks links = Instance();
  for (const torus::Axis axis : {torus::Axis::kX, torus::Axis::kY}) {
    for (const torus::Direction direction : torus::kDirections) {
      // One direction is enough: a cable sums up in one and spreads in the other.
      ASSERT_TRUE(links.SetPermille(TorusLinks::IdOf(ChipIndex(0), axis, direction), 0).ok());
    }
  }
  EXPECT_FALSE(TreePacking::Of(SetOf(MembersOf(0xffff), links), links, 4).has_value());
  EXPECT_TRUE(TreePacking::Of(SetOf(MembersOf(0xfffe), links), links, 4).has_value());
}

}  // namespace
}  // namespace tahoma::sim

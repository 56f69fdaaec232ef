// Pieces that spread along trees of their own, phase by phase: their steps are an all-reduce, and
// no link carries more in a step than its rate allows, or the bundle.

#include "sim-node/emulator/collective/algorithms/trees.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim-node/emulator/collective/plan/plan.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::MicrosecondsOf;
using testing::SlowCable;
using testing::UltraServer;
using torus::Axis;
using torus::ChipIndex;
using torus::ChipMask;

constexpr ChipMask kSquareOfThree = 0x0777;
constexpr ChipMask kThreePlanes = 0xffff'ffff'ffff;
constexpr std::uint64_t kElements = 1000;  // of a piece

collective::Trees TreesOf(Phase phase, const ChipSet& set, const TorusLinks& links,
                          std::size_t bundle) {
  auto trees =
      collective::Trees::Of(phase, set.chips(), RatesOf(links),
                            {.pieces = std::vector<std::size_t>(set.size(), 1), .bundle = bundle});
  EXPECT_TRUE(trees.has_value());
  return *std::move(trees);
}

Layout EqualBlocks(std::size_t chips, std::uint64_t elements) {
  Layout layout{.element_bytes = 4, .bounds = {0}, .fixed = true};
  for (std::size_t i = 1; i <= chips; ++i) layout.bounds.push_back(i * elements);
  return layout;
}

TEST(TreesTest, ALinkCarriesABundleInAStepAndASlowOneItsShare) {
  TorusLinks links = UltraServer();
  SlowCable(links, 5, Axis::kY, 300);
  const ChipSet set = SetOf(MembersOf(kThreePlanes), links);
  const Layout layout = EqualBlocks(48, kElements);
  for (const std::size_t bundle : {1U, 2U, 4U}) {
    const collective::Trees trees = TreesOf(Phase::kAllGather, set, links, bundle);
    for (const Step& step : TreeSteps(Phase::kAllGather, set, trees, layout)) {
      std::map<std::pair<ChipIndex, ChipIndex>, std::uint64_t> loads;
      for (const Send& send : step) loads[{send.from, send.to}] += send.bytes;
      for (const auto& [ends, bytes] : loads) {
        const auto route = links.FindRoute(ends.first, ends.second, kAllChips);
        ASSERT_TRUE(route.ok());
        ASSERT_EQ(route->size(), 1U);
        const std::uint64_t most =
            4 * kElements * bundle * links.capacity(route->front()) / 128'000'000'000;
        EXPECT_LE(bytes, most + 4) << bundle;  // rounded to elements
      }
    }
  }
}

// Chip 0 has five cables, four of X and Y's rate less one, and must get 63 pieces.
TEST(TreesTest, ABundleTakesFewerStepsDownToTheLinksToTheFarthest) {
  TorusLinks links = UltraServer();
  SlowCable(links, 0, Axis::kX, 0);
  const ChipSet set = SetOf(MembersOf(kAllChips), links);
  const auto steps = [&](std::size_t bundle) {
    return TreesOf(Phase::kAllGather, set, links, bundle).step_count();
  };
  EXPECT_LE(steps(1), 16U + 1);
  EXPECT_LE(steps(2), 8U + 1);
  EXPECT_GE(steps(4), 6U);
  EXPECT_LE(steps(4), 7U);
}

TEST(TreesTest, EveryChipEndsWithTheSumWhateverTheBundle) {
  TorusLinks links = Instance();
  SlowCable(links, 1, Axis::kY, 400);
  const ChipSet set = SetOf(MembersOf(kSquareOfThree), links);
  for (const std::size_t bundle : {1U, 2U, 4U}) {
    Schedule schedule;
    for (const Phase phase : {Phase::kReduceScatter, Phase::kAllGather}) {
      const collective::Trees trees = TreesOf(phase, set, links, bundle);
      std::ranges::move(TreeSteps(phase, set, trees, EqualBlocks(set.size(), kElements)),
                        std::back_inserter(schedule.steps));
    }
    std::vector<std::vector<std::int32_t>> values(
        set.size(), std::vector<std::int32_t>(set.size() * kElements));
    std::vector<ChipBuffer> buffers;
    for (std::size_t chip = 0; chip < set.size(); ++chip) {
      for (std::size_t i = 0; i < values[chip].size(); ++i) {
        values[chip][i] = static_cast<std::int32_t>(i * 1000 + (1U << chip));
      }
      buffers.push_back(
          {.chip = set.chips()[chip], .bytes = std::as_writable_bytes(std::span(values[chip]))});
    }
    Execute(schedule, ElementType::kInt32, ReduceOp::kSum, buffers);
    for (const auto& result : values) {
      for (std::size_t i = 0; i < result.size(); ++i) {
        ASSERT_EQ(result[i], static_cast<std::int32_t>(9 * i * 1000 + 511)) << bundle;
      }
    }
  }
}

// Blocks of 64 KiB are so short that a step's start counts more than their bytes.
TEST(TreesTest, ABrokenCableCostsASmallGatherLittle) {
  const Request request{.operation = Operation::kAllGather, .bytes = 4ULL << 20U};
  TorusLinks links = UltraServer(LinkTiming{});
  const auto healthy = PlanCollective(request, MembersOf(kAllChips), links);
  SlowCable(links, 0, Axis::kX, 0);
  const auto damaged = PlanCollective(request, MembersOf(kAllChips), links);
  ASSERT_TRUE(healthy.ok() && damaged.ok());
  EXPECT_LE(MicrosecondsOf(*damaged), 1.2 * MicrosecondsOf(*healthy));
}

}  // namespace
}  // namespace tahoma::sim

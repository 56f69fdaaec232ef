// Broadcasts along packed trees: what arrives, and in what time beside the maximum flow that bounds
// it (lib/collective/cuts.h, which shares no code with the packing).

#include "sim-node/emulator/collective/algorithms/branching_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "lib/base/rng.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/plan.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::SlowCable;
using testing::TimeOverBound;
using testing::UltraServer;
using torus::ChipMask;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// An UltraServer with some cables slow or down, and perhaps without a chip.
struct Damaged {
  explicit Damaged(std::uint64_t seed) : links(UltraServer(LinkTiming{})) {
    Rng rng(seed);
    for (std::uint64_t cables = rng.Below(7); cables > 0; --cables) {
      const int chip = static_cast<int>(rng.Below(64));
      const torus::Axis axis = torus::kAxes.at(rng.Below(3));
      SlowCable(links, chip, axis, static_cast<std::uint16_t>(rng.Below(3) * 400));
    }
    if (seed % 2 == 0) members &= ~(ChipMask{1} << (1 + rng.Below(63)));
  }

  TorusLinks links;
  ChipMask members = kAllChips;
};

TEST(BranchingStepsTest, EveryChipGetsTheRootsBufferWhateverTheNumberOfChunksAndElements) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Damaged set(seed);
    const std::vector<Member> members = MembersOf(set.members);
    const auto trees = collective::PackBranchings(DomainLinksOf(set.links), set.members,
                                                  std::countr_zero(set.members));
    ASSERT_FALSE(trees.empty());
    const std::uint64_t elements = 1 + rng.Below(2000);
    std::vector<int> lengths(1 + rng.Below(18));
    for (int& length : lengths) length = 1 + static_cast<int>(rng.Below(3));
    const Layout parts = Layout::Weighted(lengths, elements, /*element_bytes=*/4);
    std::vector<std::vector<std::byte>> memory(members.size(),
                                               std::vector<std::byte>(elements * 4));
    for (std::byte& byte : memory[0]) byte = static_cast<std::byte>(rng.Next());
    std::vector<ChipBuffer> buffers;
    for (std::size_t i = 0; i < members.size(); ++i) {
      buffers.push_back({.chip = members[i].chip, .bytes = memory[i]});
    }
    for (std::size_t index = 0; index < 2; ++index) {
      Schedule schedule;
      schedule.steps = BranchingSteps(trees, parts, {.index = index, .count = 2});
      EXPECT_EQ(schedule.steps.size(), (lengths.size() + 1) / 2 + collective::HeightOf(trees) - 1);
      Execute(schedule, ElementType::kFp32, ReduceOp::kSum, buffers);
    }
    for (const auto& chip : memory) EXPECT_EQ(chip, memory[0]);
    if (HasFailure()) break;
  }
}

TEST(BranchingStepsTest, ABroadcastOfOneGibibyteIsWithinSevenPercentOfTheMaximumFlow) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const Damaged set(seed);
    const double ratio = TimeOverBound(Operation::kBroadcast, set.members, kGiB, set.links);
    EXPECT_GE(ratio, 1);
    EXPECT_LE(ratio, 1.07);
  }
}

TEST(BranchingStepsTest, ABroadcastOnAnyBoxIsWithinSevenPercentOfTheMaximumFlow) {
  const TorusLinks links = UltraServer(LinkTiming{});
  for (const torus::Box& box : torus::BoxTable::Of(torus::kUltraServerShape).all()) {
    if (box.origin != torus::Coord{} || box.size.chip_count() == 1) continue;
    EXPECT_LE(TimeOverBound(Operation::kBroadcast, box.mask, kGiB, links), 1.07) << box.ToString();
  }
}

// A chunk needs a step for each link on its way, of which there are up to eight.
TEST(BranchingStepsTest,
     ASmallerBroadcastTakesLittleMoreThanTheMaximumFlowAndTheLinksToTheFarthest) {
  const TorusLinks links = UltraServer(LinkTiming{});
  for (const std::uint64_t bytes : {16ULL << 20U, 64ULL << 20U, 256ULL << 20U}) {
    const std::vector<Member> members = MembersOf(kAllChips);
    const auto plan =
        PlanCollective({.operation = Operation::kBroadcast, .bytes = bytes}, members, links);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const collective::LinkCosts costs = DomainLinksOf(links, ChipCosts{}).costs();
    const double needed =
        Nanoseconds(LowerBound(Operation::kBroadcast, SetOf(members, links), bytes, links) +
                    (costs.step + costs.hop) * 8);
    EXPECT_LE(testing::MicrosecondsOf(*plan) * 1e3, needed * 1.07) << bytes;
  }
}

}  // namespace
}  // namespace tahoma::sim

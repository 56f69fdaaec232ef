// All-reduces on damaged and irregular sets against their exact bound
// (lib/collective/partition.h), which shares no code with the planner.

#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "lib/base/rng.h"
#include "sim-node/collective/plan/bound.h"
#include "sim-node/collective/plan/plan.h"
#include "tests/unit/sim-node/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::SlowCable;
using testing::UltraServer;
using torus::Axis;
using torus::ChipIndex;
using torus::ChipMask;
using torus::Direction;

constexpr std::uint64_t kMiB = 1 << 20, kGiB = kMiB << 10;

double TimeOverBound(ChipMask mask, std::uint64_t bytes, const TorusLinks& links) {
  return testing::TimeOverBound(Operation::kAllReduce, mask, bytes, links);
}

TEST(AllReduceTest, ALostCableCostsWhatItsRateIsOfAll) {
  TorusLinks instance = Instance(LinkTiming{});
  SlowCable(instance, 0, Axis::kX, 0);
  EXPECT_LE(TimeOverBound(0xffff, kGiB, instance), 1.04);  // 1.30 with equal blocks
  EXPECT_LE(TimeOverBound(0x00ff, kGiB, instance), 1.07);  // 2x4
  TorusLinks whole = UltraServer(LinkTiming{});
  SlowCable(whole, 0, Axis::kX, 0);
  EXPECT_LE(TimeOverBound(kAllChips, kGiB, whole), 1.07);
  EXPECT_LE(TimeOverBound(0x000f'000f'000f'000f, kGiB, whole), 1.07);  // 4x1x4
  EXPECT_LE(TimeOverBound(0x0033'0033'0033'0033, kGiB, whole), 1.07);  // 2x2x4
  TorusLinks slow = UltraServer(LinkTiming{});
  SlowCable(slow, 21, Axis::kZ, 0);
  EXPECT_LE(TimeOverBound(kAllChips, kGiB, slow), 1.07);
}

TEST(AllReduceTest, AChipOnOneCableCostsNoMoreThanThatCableMust) {
  TorusLinks links = Instance(LinkTiming{});
  SlowCable(links, 12, Axis::kX, 0);
  SlowCable(links, 13, Axis::kY, 0);
  SlowCable(links, 4, Axis::kX, 0);
  SlowCable(links, 13, Axis::kX, 0);
  EXPECT_LE(TimeOverBound(0xffff, kGiB, links), 1.07);  // 1.88 with equal blocks
}

TEST(AllReduceTest, SetsThatAreNoBoxesComeCloseToTheirBound) {
  const TorusLinks links = Instance(LinkTiming{});
  constexpr ChipMask kStar = 0x0027;
  constexpr ChipMask kBranchedPath = 0x0137;
  for (const ChipMask mask :
       {ChipMask{0xfffe}, ChipMask{0x0777}, ChipMask{0x0fff}, kStar, kBranchedPath}) {
    EXPECT_LE(TimeOverBound(mask, kGiB, links), 1.08) << mask;
  }
}

TEST(AllReduceTest, ASlowCableCountsWithWhatItHas) {
  for (const int permille : {250, 400, 500, 550, 900}) {
    TorusLinks links = Instance(LinkTiming{});
    SlowCable(links, 5, Axis::kY, static_cast<std::uint16_t>(permille));
    EXPECT_LE(TimeOverBound(0xffff, kGiB, links), 1.07) << permille;
  }
}

// A random set that hangs together, on links of which some are slow or down.
struct Case {
  TorusLinks links;
  ChipMask mask;
};
Case RandomCase(Rng& rng, std::uint64_t most) {
  Case one{.links = rng.Below(2) == 0 ? Instance(LinkTiming{}) : UltraServer(LinkTiming{}),
           .mask = 1};
  const std::uint64_t size = 3 + rng.Below(most - 2);
  const auto ids = static_cast<std::uint64_t>(one.links.id_count());
  while (static_cast<std::uint64_t>(std::popcount(one.mask)) < size) {
    const auto link = static_cast<LinkId>(rng.Below(ids));
    if (!one.links.Exists(link)) continue;
    const torus::Hop hop = one.links.HopOf(link);
    if ((MaskOf(hop.from) & one.mask) != 0) one.mask |= MaskOf(hop.to);
  }
  for (std::uint64_t i = rng.Below(4); i > 0; --i) {
    const auto link = static_cast<LinkId>(rng.Below(ids));
    if (!one.links.Exists(link)) continue;
    EXPECT_TRUE(
        one.links.SetCablePermille(link, static_cast<std::uint16_t>(rng.Below(5) * 250)).ok());
  }
  return one;
}

TEST(AllReduceTest, RandomSetsAreNeverFasterThanTheirBoundAndOnAverageCloseToIt) {
  double sum = 0;
  int count = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    Rng rng(seed);
    const Case one = RandomCase(rng, 16);
    const ChipSet set = SetOf(MembersOf(one.mask), one.links);
    if (LowerBound(Operation::kAllReduce, set, kGiB, one.links) == VirtualDuration::max()) continue;
    for (const std::uint64_t bytes : {kMiB, 256 * kMiB}) {
      const double ratio = TimeOverBound(one.mask, bytes, one.links);
      EXPECT_GE(ratio, 1) << "seed " << seed;
      if (bytes == kMiB) continue;
      EXPECT_LE(ratio, 1.25) << "seed " << seed << " of " << set.size();
      sum += ratio;
      ++count;
    }
  }
  ASSERT_GT(count, 50);
  EXPECT_LE(sum / count, 1.06);
}

// A chip set that is planned again is planned alike: processes plan for themselves.
TEST(AllReduceTest, PlanningIsDeterministic) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Rng rng(seed);
    const Case one = RandomCase(rng, 12);
    const auto plan = [&] {
      return PlanCollective({.operation = Operation::kAllReduce, .bytes = 64 * kMiB},
                            MembersOf(one.mask), one.links);
    };
    const auto first = plan();
    const auto second = plan();
    ASSERT_EQ(first.ok(), second.ok());
    if (!first.ok()) continue;
    EXPECT_EQ(first->schedule.steps, second->schedule.steps) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tahoma::sim

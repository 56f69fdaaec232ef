// The bound against the numbers of docs/reference/collectives.md, and every plan against the bound.

#include "sim-node/emulator/collective/plan/bound.h"

#include <gtest/gtest.h>

#include <bit>

#include "lib/base/rng.h"
#include "sim-node/emulator/collective/plan/plan.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::UltraServer;
using torus::ChipIndex;
using torus::ChipMask;

constexpr Operation kBounded[] = {Operation::kAllReduce, Operation::kAllGather,
                                  Operation::kReduceScatter, Operation::kAllToAll,
                                  Operation::kBroadcast};

double BoundUs(Operation operation, ChipMask mask, std::uint64_t bytes, const TorusLinks& links) {
  return Nanoseconds(LowerBound(operation, SetOf(MembersOf(mask), links), bytes, links)) / 1e3;
}

TEST(BoundTest, WholeInstancesAndUltraServersHaveTheReferencesBounds) {
  // docs/reference/collectives.md#lower-bounds, in microseconds
  EXPECT_NEAR(BoundUs(Operation::kAllGather, 0xffff, kGiB, Instance()), 1966, 1);
  EXPECT_NEAR(BoundUs(Operation::kAllReduce, 0xffff, kGiB, Instance()), 3932, 1);
  EXPECT_NEAR(BoundUs(Operation::kAllToAll, 0xffff, kGiB, Instance()), 4194, 1);
  EXPECT_NEAR(BoundUs(Operation::kReduceScatter, kAllChips, kGiB, UltraServer()), 1652, 1);
  EXPECT_NEAR(BoundUs(Operation::kAllReduce, kAllChips, kGiB, UltraServer()), 3303, 1);
  EXPECT_NEAR(BoundUs(Operation::kAllToAll, kAllChips, kGiB, UltraServer()), 8389, 1);
}

TEST(BoundTest, TheBestSetsOfEachSizeHaveTheAllGatherRatesOfTheReference) {
  // docs/reference/torus.md#boxes, GB/s of gathered bytes: rows, squares, rings, and two sets that
  // are no boxes.
  const TorusLinks links = Instance();
  const auto rate = [&](ChipMask mask) {
    return static_cast<double>(kGiB) / BoundUs(Operation::kAllGather, mask, kGiB, links) / 1e3;
  };
  EXPECT_NEAR(rate(0b11), 256, 0.1);
  EXPECT_NEAR(rate(0b1111), 341.3, 0.1);
  EXPECT_NEAR(rate(0b0011'0011), 341.3, 0.1);
  EXPECT_NEAR(rate(0x00ff), 438.9, 0.1);
  EXPECT_NEAR(rate(0xffff), 546.1, 0.1);
  EXPECT_NEAR(rate(0xfffe), 411.4, 0.1);                 // one chip has failed
  EXPECT_NEAR(rate(0b0000'0001'0011'0010), 170.7, 0.1);  // a bent path of four
}

TEST(BoundTest, OneChipNeedsNoTimeAndChipsThatAreCutOffForever) {
  TorusLinks links = Instance();
  EXPECT_EQ(LowerBound(Operation::kAllReduce, SetOf(MembersOf(1), links), kGiB, links),
            VirtualDuration(0));
  for (const torus::Axis axis : {torus::Axis::kX, torus::Axis::kY}) {
    for (const torus::Direction direction : torus::kDirections) {
      ASSERT_TRUE(links.SetCablePermille(TorusLinks::IdOf(ChipIndex(0), axis, direction), 0).ok());
    }
  }
  EXPECT_EQ(LowerBound(Operation::kAllReduce, SetOf(MembersOf(0xffff), links), kGiB, links),
            VirtualDuration::max());
}

TEST(BoundTest, NoPlanOfAnyAlgorithmBeatsTheBoundOnAnySetHealthyOrNot) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    TorusLinks links =
        seed % 4 == 0 ? UltraServer({.step = {}, .hop = {}}) : Instance({.step = {}, .hop = {}});
    const ChipMask all = seed % 4 == 0 ? kAllChips : 0xffff;
    ChipMask mask = rng.Next() & all;
    if (std::popcount(mask) < 2) mask = all;
    for (std::uint64_t i = rng.Below(4); i > 0; --i) {
      const auto link = static_cast<LinkId>(rng.Below(links.id_count()));
      if (links.Exists(link)) {
        ASSERT_TRUE(links.SetPermille(link, static_cast<std::uint16_t>(rng.Below(1001))).ok());
      }
    }
    const ChipSet set = SetOf(MembersOf(mask), links);
    for (const Operation operation : kBounded) {
      const std::uint64_t bytes = 64 * static_cast<std::uint64_t>(set.size()) * kMiB / 16;
      const VirtualDuration bound = LowerBound(operation, set, bytes, links);
      for (const Algorithm algorithm :
           {Algorithm::kMesh, Algorithm::kRdh, Algorithm::kRing, Algorithm::kTree}) {
        if (algorithm == Algorithm::kRdh && set.box() == nullptr) continue;
        const auto plan =
            PlanWith(algorithm, {.operation = operation, .bytes = bytes}, MembersOf(mask), links);
        if (!plan.ok()) continue;
        EXPECT_GE(plan->times.end - plan->times.start, bound)
            << "seed " << seed << " " << Name(operation) << " " << Name(algorithm);
      }
    }
  }
}

// Tests every operation with such a bound; start-up, memory and the chips' other costs are
// included.
class LargeCollectives : public ::testing::TestWithParam<Operation> {
 protected:
  static double Ratio(ChipMask mask, std::uint64_t bytes, const TorusLinks& links) {
    const auto plan =
        PlanCollective({.operation = GetParam(), .bytes = bytes}, MembersOf(mask), links);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return Nanoseconds(plan->times.end - plan->times.start) / 1e3 /
           BoundUs(GetParam(), mask, bytes, links);
  }
};

TEST_P(LargeCollectives, ComeWithinSevenPercentOfTheBoundOnEverySubcubeOfAnInstance) {
  const TorusLinks links = Instance(LinkTiming{});
  for (const torus::Box& box : torus::BoxTable::Of(torus::kInstanceShape).all()) {
    if (box.size.chip_count() == 1) continue;
    for (std::uint64_t bytes = 64 * kMiB; bytes <= kGiB; bytes *= 4) {
      EXPECT_LE(Ratio(box.mask, bytes, links), 1.07) << bytes << " on " << box.ToString();
    }
  }
}

TEST_P(LargeCollectives, ComeWithinAQuarterOfTheBoundOnHalfAndWholeUltraServers) {
  const TorusLinks links = UltraServer(LinkTiming{});
  for (const ChipMask mask : {ChipMask{0xffff'ffff}, kAllChips}) {
    for (std::uint64_t bytes = 64 * kMiB; bytes <= kGiB; bytes *= 2) {
      EXPECT_LE(Ratio(mask, bytes, links), 1.25) << bytes << " on " << std::popcount(mask);
    }
    EXPECT_LE(Ratio(mask, kGiB, links), mask == kAllChips ? 1.07 : 1.14) << std::popcount(mask);
  }
}

INSTANTIATE_TEST_SUITE_P(OfEveryOperation, LargeCollectives,
                         ::testing::Values(Operation::kAllReduce, Operation::kAllGather,
                                           Operation::kReduceScatter, Operation::kAllToAll),
                         [](const auto& of) {
                           std::string name(Name(of.param));
                           std::erase(name, '_');
                           return name;
                         });

// A removed link, a dead chip, chips that form no box: what cuts allow, and a fifth more at most.
TEST(BoundTest, DamagedAndIrregularSetsComeWithinAFifthOfTheirBound) {
  const auto ratio = [](Operation operation, ChipMask mask, const TorusLinks& links) {
    const auto plan =
        PlanCollective({.operation = operation, .bytes = kGiB}, MembersOf(mask), links);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return Nanoseconds(plan->times.end - plan->times.start) / 1e3 /
           BoundUs(operation, mask, kGiB, links);
  };
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter}) {
    TorusLinks broken = Instance();
    ASSERT_TRUE(broken
                    .SetCablePermille(
                        TorusLinks::IdOf(ChipIndex(5), torus::Axis::kX, torus::Direction::kPlus), 0)
                    .ok());
    EXPECT_LE(ratio(operation, 0xffff, broken), 1.2) << Name(operation);
    EXPECT_LE(ratio(operation, 0xfffe, Instance()), 1.2) << Name(operation);
    EXPECT_LE(ratio(operation, 0x0777, Instance()), 1.2) << Name(operation);  // 3x3
    EXPECT_LE(ratio(operation, 0x0fff, Instance()), 1.2) << Name(operation);  // 4x3
  }
}

// The defect: of four ranks on each chip only one counted, so the bound was four times too low.
TEST(BoundTest, WhatRanksExchangeCrossesLinksOnceForEachOfThem) {
  const TorusLinks links = Instance();
  const auto bound = [&](Operation operation, int ranks) {
    return Nanoseconds(
        LowerBound({.operation = operation, .bytes = kGiB}, MembersOf(0xffff, ranks), links));
  };
  for (const Operation operation : {Operation::kAllToAll, Operation::kPermute}) {
    EXPECT_NEAR(bound(operation, 4), 4 * bound(operation, 1), 1) << Name(operation);
  }
  for (const Operation operation : {Operation::kAllReduce, Operation::kAllGather,
                                    Operation::kReduceScatter, Operation::kBroadcast}) {
    EXPECT_EQ(bound(operation, 4), bound(operation, 1)) << Name(operation);
  }
}

}  // namespace
}  // namespace tahoma::sim

// All-reduces on damaged and irregular sets against their exact bound: by a search of all
// partitions of few chips, else by lib/collective/partition.h, whose own test searches them, too.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/plan.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::SlowCable;
using testing::SlowCablesOf;
using testing::UltraServer;
using torus::Axis;
using torus::ChipMask;

double TimeOverBound(ChipMask mask, std::uint64_t bytes, const TorusLinks& links) {
  return testing::TimeOverBound(Operation::kAllReduce, mask, bytes, links);
}

TEST(AllReduceTest, ALostCableCostsWhatItsRateIsOfAll) {
  TorusLinks instance = Instance(LinkTiming{});
  SlowCable(instance, 0, Axis::kX, 0);
  EXPECT_LE(TimeOverBound(0xffff, kGiB, instance), 1.05);  // 1.30 with equal blocks
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

TEST(AllReduceTest, SetsThatAreNoBoxesTakeAtMostTwoFifthsLongerThanTheirBound) {
  const TorusLinks links = Instance(LinkTiming{});
  constexpr ChipMask kStar = 0x0027;
  constexpr ChipMask kBranchedPath = 0x0137;
  for (const ChipMask mask :
       {ChipMask{0xfffe}, ChipMask{0x0777}, ChipMask{0x0fff}, kStar, kBranchedPath}) {
    EXPECT_LE(TimeOverBound(mask, kGiB, links), 1.4) << mask;
  }
}

// A random set that hangs together, on links of which some are slow or down.
struct Case {
  TorusLinks links;
  ChipMask mask;
};
Case RandomCase(Rng& rng, std::uint64_t least, std::uint64_t most) {
  const bool small = most <= 16 && rng.Below(2) == 0;
  Case one{.links = small ? Instance(LinkTiming{}) : UltraServer(LinkTiming{}), .mask = 1};
  const std::uint64_t size = least + rng.Below(most - least + 1);
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

bool IsJoined(const Case& one) {
  const ChipSet set = SetOf(MembersOf(one.mask), one.links);
  return LowerBound(Operation::kAllReduce, set, kGiB, one.links) != VirtualDuration::max();
}

// Nanoseconds for each byte that the worst of all partitions allows, by trying each: `parts` are
// those of the chips that are not in `left`.
double WorstOfAll(const TorusLinks& links, ChipMask all, ChipMask left,
                  std::vector<ChipMask>& parts) {
  double worst = 0;
  if (left == 0 && parts.size() > 1) {
    double rate = 0;  // of links between parts, in both directions
    for (LinkId link = 0; link < links.id_count(); ++link) {
      if (links.capacity(link) == 0) continue;
      const ChipMask from = MaskOf(links.HopOf(link).from);
      const ChipMask to = MaskOf(links.HopOf(link).to);
      if (((from | to) & ~all) != 0) continue;
      const bool inside = std::ranges::any_of(
          parts, [&](ChipMask part) { return (part & from) != 0 && (part & to) != 0; });
      if (!inside) rate += static_cast<double>(links.capacity(link));
    }
    return 2e9 * static_cast<double>(parts.size() - 1) / rate;
  }
  if (left == 0) return 0;
  const ChipMask chip = left & (~left + 1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] |= chip;
    worst = std::max(worst, WorstOfAll(links, all, left & ~chip, parts));
    parts[i] &= ~chip;
  }
  parts.push_back(chip);
  worst = std::max(worst, WorstOfAll(links, all, left & ~chip, parts));
  parts.pop_back();
  return worst;
}

TEST(AllReduceTest, FewChipsAreNeverFasterThanTheWorstOfAllTheirPartitionsNorHalfAsSlowAgain) {
  int count = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    const Case one = RandomCase(rng, 3, 8);
    if (!IsJoined(one)) continue;
    std::vector<ChipMask> parts;
    const double bound = WorstOfAll(one.links, one.mask, one.mask, parts);
    const auto plan = PlanCollective({.operation = Operation::kAllReduce, .bytes = 256 * kMiB},
                                     MembersOf(one.mask), one.links);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const double ratio = testing::MicrosecondsOf(*plan) * 1e3 / (bound * 256 * kMiB);
    EXPECT_GE(ratio, 1) << "seed " << seed;
    EXPECT_LE(ratio, 1.55) << "seed " << seed;
    ++count;
  }
  EXPECT_GT(count, 25);
}

struct Ratios {
  double mean = 0;
  double most = 0;
};
Ratios RatiosOf(const std::vector<Case>& cases, std::uint64_t bytes) {
  Ratios ratios;
  for (const Case& one : cases) {
    const double ratio = TimeOverBound(one.mask, bytes, one.links);
    EXPECT_GE(ratio, 1) << one.mask;
    ratios.mean += ratio / static_cast<double>(cases.size());
    ratios.most = std::max(ratios.most, ratio);
  }
  return ratios;
}

TEST(AllReduceTest, RandomSetsAreNeverFasterThanTheirBoundNorMuchMoreThanTwiceAsSlow) {
  std::vector<Case> cases;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    Rng rng(seed);
    if (Case one = RandomCase(rng, 3, 25); IsJoined(one)) cases.push_back(std::move(one));
  }
  ASSERT_GT(cases.size(), 50U);
  RatiosOf(cases, kMiB);
  const Ratios middle = RatiosOf(cases, 64 * kMiB);
  EXPECT_LE(middle.mean, 1.5);
  EXPECT_LE(middle.most, 2.1);
  const Ratios large = RatiosOf(cases, 256 * kMiB);
  EXPECT_LE(large.mean, 1.35);
  EXPECT_LE(large.most, 1.8);
}

// Chips that are dead, sets of more than 25 chips that are no boxes, and cables down or slow.
TEST(AllReduceTest, DamagedUltraServersTakeAtMostTwiceTheirBound) {
  std::vector<Case> cases;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Rng rng(seed);
    Case dead{.links = UltraServer(LinkTiming{}), .mask = kAllChips};
    for (std::uint64_t i = 0; i < seed; ++i) dead.mask &= ~(ChipMask{1} << rng.Below(64));
    if (IsJoined(dead)) cases.push_back(std::move(dead));
    if (Case one = RandomCase(rng, 26, 63); IsJoined(one)) cases.push_back(std::move(one));
    Case slow{.links = UltraServer(LinkTiming{}), .mask = kAllChips};
    for (std::uint64_t i = 0; i < seed % 4; ++i) {
      const auto permille = static_cast<std::uint16_t>(rng.Below(4) * 250);
      SlowCable(slow.links, static_cast<int>(rng.Below(64)), torus::kAxes.at(rng.Below(3)),
                permille);
    }
    cases.push_back(std::move(slow));
  }
  ASSERT_GT(cases.size(), 20U);
  const Ratios middle = RatiosOf(cases, 64 * kMiB);
  EXPECT_LE(middle.mean, 1.55);
  EXPECT_LE(middle.most, 1.95);
  EXPECT_LE(RatiosOf(cases, 128 * kMiB).most, 1.75);
  const Ratios large = RatiosOf(cases, 256 * kMiB);
  EXPECT_LE(large.mean, 1.35);
  EXPECT_LE(large.most, 1.65);
}

// A chip set that is planned again is planned alike: processes plan for themselves.
TEST(AllReduceTest, PlanningIsDeterministic) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Rng rng(seed);
    const Case one = RandomCase(rng, 3, 12);
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

// The exact partitions against all partitions of small sets, and against published numbers.

#include "lib/collective/partition.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <numeric>
#include <vector>

#include "lib/base/rng.h"
#include "tests/unit/lib/collective/support.h"

namespace tahoma::collective {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::ChipMask;
using torus::Direction;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

double Microseconds(const Cut& cut, ChipMask members) {
  const double blocks = static_cast<double>(cut.blocks) / std::popcount(members);
  return blocks * static_cast<double>(kGiB) / static_cast<double>(cut.rate) * 1e6;
}

// Calls visit(parts) for every partition of the chips.
void ForEachPartition(ChipMask chips, std::vector<ChipMask>& parts,
                      const std::function<void(const std::vector<ChipMask>&)>& visit) {
  if (chips == 0) return visit(parts);
  const ChipMask chip = chips & (~chips + 1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] |= chip;
    ForEachPartition(chips & ~chip, parts, visit);
    parts[i] &= ~chip;
  }
  parts.push_back(chip);
  ForEachPartition(chips & ~chip, parts, visit);
  parts.pop_back();
}

TEST(PartitionTest, TheWorstPartitionOfASmallSetIsTheOneThatASearchOfAllFinds) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Rng rng(seed);
    const RandomSet one(rng, 2 + static_cast<int>(rng.Below(7)));
    double worst = 0;
    std::vector<ChipMask> none;
    ForEachPartition(one.members, none, [&](const std::vector<ChipMask>& parts) {
      if (parts.size() < 2) return;
      std::uint64_t rate = 0;
      for (const ChipMask part : parts) {
        rate += RateInto(one.links, one.members & ~part, one.members);
      }
      worst = std::max(worst, 2 * static_cast<double>(parts.size() - 1) * kGiB /
                                  static_cast<double>(rate) * 1e6);
    });
    EXPECT_DOUBLE_EQ(Microseconds(WorstPartition(one.links, one.members), one.members), worst)
        << "seed " << seed;
  }
}

// By duality the least time of a phase is that of some parts, which need not cover all chips.
TEST(PartitionTest, SharesOfASmallSetHaveTheTimeOfTheWorstParts) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Rng rng(seed);
    const RandomSet one(rng, 2 + static_cast<int>(rng.Below(6)));
    double worst = 0;
    // A part that has the bit of no chip takes in the chips of no part.
    constexpr ChipMask kOutside = ChipMask{1} << 63;
    if ((one.members & kOutside) != 0) continue;
    std::vector<ChipMask> parts{kOutside};
    ForEachPartition(one.members, parts, [&](const std::vector<ChipMask>& all) {
      if (all.size() < 3) return;
      std::uint64_t rate = 0;
      for (std::size_t i = 1; i < all.size(); ++i) {
        rate += RateInto(one.links, one.members & ~all[i], one.members);
      }
      worst = std::max(
          worst, static_cast<double>(all.size() - 2) * kGiB / static_cast<double>(rate) * 1e6);
    });
    const SumShares shares = BestSumShares(one.links, one.members);
    EXPECT_DOUBLE_EQ(Microseconds(shares.phase, one.members), worst) << "seed " << seed;
  }
}

TEST(PartitionTest, NoPartOfASetMustSendMoreThanItsLinksCarryInTheTimeOfAPhase) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    const RandomSet one(rng, 2 + static_cast<int>(rng.Below(10)));
    const SumShares shares = BestSumShares(one.links, one.members);
    if (shares.phase.rate == 0) continue;
    EXPECT_EQ(std::accumulate(shares.of.begin(), shares.of.end(), std::uint64_t{0}), shares.whole);
    const double time = Microseconds(shares.phase, one.members) / 1e6;
    for (ChipMask part = one.members; part != 0; part = (part - 1) & one.members) {
      std::uint64_t own = 0;
      for (ChipMask left = part; left != 0; left &= left - 1) {
        own += shares.of.at(static_cast<std::size_t>(std::countr_zero(left)));
      }
      const double others = 1 - static_cast<double>(own) / static_cast<double>(shares.whole);
      const auto rate = static_cast<double>(RateInto(one.links, one.members & ~part, one.members));
      EXPECT_LE(others * kGiB, rate * time * (1 + 1e-9)) << "seed " << seed << " part " << part;
    }
  }
}

// The values of docs/reference/torus.md#all-reduce-on-damaged-sets, for 1 GiB.
TEST(PartitionTest, DamagedBoxesHaveTheReferencesBounds) {
  const auto bound = [](const DomainLinks& links, ChipMask members) {
    return Microseconds(WorstPartition(links, members), members);
  };
  EXPECT_NEAR(bound(Instance(), 0xffff), 3932.2, 0.1);
  EXPECT_NEAR(bound(UltraServer(), ~ChipMask{0}), 3303.0, 0.1);
  DomainLinks one = Instance();
  SlowCable(one, 0, Axis::kX, Direction::kPlus, 0);
  EXPECT_NEAR(bound(one, 0xffff), 4059.0, 0.1);
  EXPECT_NEAR(bound(one, 0x00ff), 5338.2, 0.1);  // 2x4 without a cable of a ring of 4
  DomainLinks four = Instance();
  SlowCable(four, 0, Axis::kX, Direction::kPlus, 0);
  SlowCable(four, 0, Axis::kY, Direction::kPlus, 0);
  SlowCable(four, 15, Axis::kY, Direction::kPlus, 0);
  SlowCable(four, 4, Axis::kX, Direction::kPlus, 0);
  EXPECT_NEAR(bound(four, 0xffff), 4493.9, 0.1);
  DomainLinks lonely = Instance();  // chip 13 has one cable
  SlowCable(lonely, 12, Axis::kX, Direction::kPlus, 0);
  SlowCable(lonely, 13, Axis::kY, Direction::kPlus, 0);
  SlowCable(lonely, 4, Axis::kX, Direction::kPlus, 0);
  SlowCable(lonely, 13, Axis::kX, Direction::kPlus, 0);
  EXPECT_NEAR(bound(lonely, 0xffff), 8388.6, 0.1);
}

TEST(PartitionTest, AChipOnOneCableSumsUpHalf) {
  DomainLinks links = Instance();
  SlowCable(links, 12, Axis::kX, Direction::kPlus, 0);
  SlowCable(links, 13, Axis::kY, Direction::kPlus, 0);
  SlowCable(links, 13, Axis::kX, Direction::kPlus, 0);
  const SumShares shares = BestSumShares(links, 0xffff);
  EXPECT_EQ(2 * shares.of.at(13), shares.whole);
  EXPECT_NEAR(2 * Microseconds(shares.phase, 0xffff), 8388.6, 0.1);
}

TEST(PartitionTest, AHealthyBoxSharesEqually) {
  const SumShares shares = BestSumShares(UltraServer(), ~ChipMask{0});
  for (const std::uint64_t share : shares.of) EXPECT_EQ(64 * share, shares.whole);
}

// The centre of three single cables cannot send on all of them while it sums up: one phase after
// the other takes a third longer than both at once.
TEST(PartitionTest, AStarNeedsBothPhasesAtOnce) {
  const ChipMask star = 0b0000'0010'0111;  // 1 in the middle of 0, 2 and 5; no ring
  const Cut bound = WorstPartition(Instance(), star);
  const SumShares shares = BestSumShares(Instance(), star);
  EXPECT_NEAR(Microseconds(bound, star), 8388.6, 0.1);
  EXPECT_NEAR(2 * Microseconds(shares.phase, star), 8388.6 * 4 / 3, 0.1);
}

TEST(PartitionTest, ChipsThatAreCutOffHaveNoRate) {
  DomainLinks links = Instance();
  links.Kill(1);
  EXPECT_EQ(WorstPartition(links, 0xffff).rate, 0);
  EXPECT_EQ(BestSumShares(links, 0xffff).phase.rate, 0);
  EXPECT_EQ(WorstPartition(links, 0b11).rate, 0);
}

}  // namespace
}  // namespace tahoma::collective

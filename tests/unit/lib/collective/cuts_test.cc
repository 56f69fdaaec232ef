// The exact cuts against all parts of small sets, and against closed forms.

#include "lib/collective/cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "lib/base/rng.h"
#include "tests/unit/lib/collective/support.h"

namespace tahoma::collective {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::ChipMask;
using torus::Direction;

constexpr ChipMask kAll = ~ChipMask{0};
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// Takes links at random out of service, in one direction each.
void Damage(DomainLinks& links, Rng& rng, std::uint64_t count) {
  for (; count > 0; --count) {
    const LinkFault fault{.chip = ChipIndex(static_cast<int>(
                              rng.Below(static_cast<std::uint64_t>(links.torus().chip_count())))),
                          .axis = torus::kAxes.at(rng.Below(3)),
                          .direction = torus::kDirections.at(rng.Below(2)),
                          .permille = static_cast<std::uint16_t>(rng.Below(3) * 400)};
    if (links.torus().extent(fault.axis) > 1) links.SetPermille(fault);
  }
}

// The slow oracle: every part of the chips that may be crossed.
template <typename Blocks>
Cut WorstOfAllParts(const DomainLinks& links, ChipMask through, const Blocks& blocks_into) {
  Cut worst{.blocks = 0, .rate = 1};
  for (ChipMask part = through; part != 0; part = (part - 1) & through) {
    const Cut cut{.blocks = blocks_into(part), .rate = RateInto(links, part, through)};
    if (cut.blocks != 0 && cut.WorseThan(worst)) worst = cut;
  }
  return worst;
}

std::uint64_t Count(ChipMask chips) { return static_cast<std::uint64_t>(std::popcount(chips)); }

bool SameRatio(const Cut& a, const Cut& b) { return !a.WorseThan(b) && !b.WorseThan(a); }

TEST(CutsTest, TheWorstCutsOfSmallSetsAreThoseThatASearchOfAllPartsFinds) {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    Rng rng(seed);
    DomainLinks links = Instance();
    Damage(links, rng, rng.Below(12));
    ChipMask members = rng.Next() & rng.Next() & 0xffff;
    if (seed % 3 == 0) members |= rng.Next() & 0xffff;
    if (Count(members) < 2) continue;
    // Up to 11 chips may be crossed, or the search takes too long.
    const ChipMask through =
        Count(members) < 11 && seed % 2 == 0 ? members | 0b11'0000'0011 : members;
    if (Count(through) > 11) continue;
    const auto has_sink = [&](ChipMask part) { return (part & members) != 0; };
    EXPECT_TRUE(SameRatio(WorstGatherCut(links, members, through),
                          WorstOfAllParts(links, through,
                                          [&](ChipMask part) {
                                            return has_sink(part) ? Count(members & ~part) : 0;
                                          })))
        << "seed " << seed;
    EXPECT_TRUE(SameRatio(WorstScatterCut(links, members, through),
                          WorstOfAllParts(links, through,
                                          [&](ChipMask part) {
                                            const bool all = (members & ~part) == 0;
                                            return all ? 0 : Count(members & part);
                                          })))
        << "seed " << seed;
    const int root = std::countr_zero(members);
    EXPECT_TRUE(SameRatio(WorstBroadcastCut(links, members, through, root),
                          WorstOfAllParts(links, through,
                                          [&](ChipMask part) {
                                            const bool away = (part >> root & 1) == 0;
                                            return away && has_sink(part) ? Count(members) : 0;
                                          })))
        << "seed " << seed;
    const Cut exchange = WorstOfAllParts(links, through, [&](ChipMask part) {
      return Count(members & part) * Count(members & ~part);
    });
    if (exchange.rate == 0) continue;
    // Never better than physically possible: some parts are tried only.
    const Cut tried = WorstExchangeCut(links, members, through);
    if (tried.WorseThan(exchange)) {
      // by the links' total rate, which no single part shows
      std::uint64_t total = 0;
      for (int arc = 0; arc < links.arc_count(); ++arc) {
        const ChipMask ends =
            ChipMask{1} << (arc / kPortsPerChip) | ChipMask{1} << links.to(static_cast<Arc>(arc));
        if ((ends & ~through) == 0) total += links.rate(static_cast<Arc>(arc));
      }
      EXPECT_EQ(tried.rate, total) << "seed " << seed;
    }
  }
}

TEST(CutsTest, EveryBoxIsBoundByTheLinksOfOneChip) {
  const DomainLinks links = UltraServer();
  for (const torus::Box& box : torus::BoxTable::Of(torus::kUltraServerShape).all()) {
    const std::uint64_t n = Count(box.mask);
    if (n < 2) continue;
    const std::uint64_t in = RateInto(links, box.mask & (~box.mask + 1), box.mask);
    const Cut lone{.blocks = n - 1, .rate = in};
    EXPECT_TRUE(SameRatio(WorstGatherCut(links, box.mask, box.mask), lone)) << box.ToString();
    EXPECT_TRUE(SameRatio(WorstScatterCut(links, box.mask, box.mask), lone)) << box.ToString();
    // A broadcast must also enter a half beyond the slow dimension whole.
    const bool thin = box.size.extent(Axis::kZ) == 2;
    const Cut whole{.blocks = n,
                    .rate = thin ? std::min<std::uint64_t>(in, n / 2 * 64'000'000'000) : in};
    EXPECT_TRUE(
        SameRatio(WorstBroadcastCut(links, box.mask, box.mask, std::countr_zero(box.mask)), whole))
        << box.ToString();
  }
}

TEST(CutsTest, TheWholeTorusHasTheReferencesBounds) {
  // docs/reference/collectives.md#lower-bounds, in microseconds for 1 GiB
  const auto us = [](Operation operation, ChipMask members, const DomainLinks& links) {
    return static_cast<double>(LowerBound(operation, members, ChipIndex(0), kGiB, links).count()) /
           1e6;
  };
  EXPECT_NEAR(us(Operation::kAllGather, 0xffff, Instance()), 1966, 1);
  EXPECT_NEAR(us(Operation::kAllReduce, 0xffff, Instance()), 3932, 1);
  EXPECT_NEAR(us(Operation::kAllToAll, 0xffff, Instance()), 4194, 1);
  EXPECT_NEAR(us(Operation::kReduceScatter, kAll, UltraServer()), 1652, 1);
  EXPECT_NEAR(us(Operation::kAllReduce, kAll, UltraServer()), 3303, 1);
  EXPECT_NEAR(us(Operation::kAllToAll, kAll, UltraServer()), 8389, 1);
  EXPECT_NEAR(us(Operation::kBroadcast, 0xffff, Instance()), kGiB / 512e3, 1);
  EXPECT_NEAR(us(Operation::kPermute, 0xffff, Instance()), kGiB / 512e3, 1);
}

TEST(CutsTest, ABridgeIsTheWorstCutOfTwoHalvesThatItJoins) {
  // Two rows of four that only one cable joins: four blocks must cross it in each direction.
  DomainLinks links = Instance();
  for (int x = 1; x < 4; ++x) {
    links.SetPermille({.chip = ChipIndex(x), .axis = Axis::kY, .direction = Direction::kPlus});
    links.SetPermille({.chip = ChipIndex(4 + x), .axis = Axis::kY, .direction = Direction::kMinus});
  }
  const Cut cut = WorstGatherCut(links, 0xff, 0xff);
  EXPECT_EQ(cut.blocks, 4U);
  EXPECT_EQ(cut.rate, 128'000'000'000U);
}

TEST(CutsTest, ADirectionThatIsDownCountsForTheOperationThatNeedsIt) {
  // Nothing comes into chip 0 along X: it gathers at half the rate, and scatters as before, when
  // what it scatters may come in slowly.
  DomainLinks links = Instance();
  links.SetPermille({.chip = ChipIndex(1), .axis = Axis::kX, .direction = Direction::kMinus});
  links.SetPermille({.chip = ChipIndex(3), .axis = Axis::kX, .direction = Direction::kPlus});
  const Cut gather = WorstGatherCut(links, 0xffff, 0xffff);
  EXPECT_TRUE(SameRatio(gather, {.blocks = 15, .rate = 256'000'000'000})) << gather.rate;
  EXPECT_TRUE(gather.WorseThan(WorstScatterCut(links, 0xffff, 0xffff)));
}

TEST(CutsTest, ChipsThatAreCutOffHaveNoBound) {
  DomainLinks links = Instance();
  links.Kill(1);
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter,
        Operation::kAllToAll, Operation::kBroadcast, Operation::kSendReceive}) {
    EXPECT_EQ(LowerBound(operation, 0xffff, ChipIndex(1), kGiB, links), Picoseconds::max())
        << Name(operation);
  }
  EXPECT_LT(LowerBound(Operation::kAllReduce, 0xfffe, ChipIndex(1), kGiB, links),
            Picoseconds::max());
  EXPECT_EQ(LowerBound(Operation::kAllReduce, 2, ChipIndex(1), kGiB, links), Picoseconds(0));
}

TEST(CutsTest, ChipsThatDoNotHangTogetherSendThroughOthers) {
  const DomainLinks links = Instance();
  EXPECT_EQ(ThroughOf(links, 0b0101), 0xffffU);
  EXPECT_EQ(ThroughOf(links, 0b0111), 0b0111U);
  EXPECT_LT(LowerBound(Operation::kAllReduce, 0b0101, ChipIndex(0), kGiB, links),
            Picoseconds::max());
}

TEST(CutsTest, LosingRateNeverMakesABoundShorter) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    DomainLinks links = UltraServer();
    const ChipMask members = rng.Next() | rng.Next();
    for (int round = 0; round < 4; ++round) {
      DomainLinks worse = links;
      Damage(worse, rng, 8);
      for (const Operation operation : {Operation::kAllReduce, Operation::kAllGather,
                                        Operation::kReduceScatter, Operation::kBroadcast}) {
        const ChipIndex root(std::countr_zero(members));
        EXPECT_LE(LowerBound(operation, members, root, kGiB, links),
                  LowerBound(operation, members, root, kGiB, worse))
            << "seed " << seed << " " << Name(operation);
      }
      links = worse;
    }
  }
}

}  // namespace
}  // namespace tahoma::collective

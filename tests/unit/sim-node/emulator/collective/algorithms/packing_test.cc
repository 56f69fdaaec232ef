// Packed trees: each spans the set, is low, and together they load the cables evenly.

#include "sim-node/emulator/collective/algorithms/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "lib/base/rng.h"
#include "lib/collective/partition.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/plan.h"
#include "tests/unit/sim-node/emulator/collective/algorithms/packings.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::UltraServer;
using torus::ChipIndex;
using torus::ChipMask;

constexpr ChipMask kSquareOfThree = 0x0777;

std::optional<TreePacking> Packed(ChipMask mask, const TorusLinks& links, std::size_t count) {
  return TreePacking::Of(SetOf(MembersOf(mask), links), links, count);
}

TEST(PackingTest, EveryTreeSpansTheSetLevelByLevelOverCablesOfIts) {
  const auto packing = Packed(kSquareOfThree, Instance(), 40);
  ASSERT_TRUE(packing.has_value());
  ASSERT_GE(packing->trees().size(), 36U);
  ASSERT_LE(packing->trees().size(), 40U);
  std::vector<std::uint64_t> uses(packing->cables().size());
  for (const TreePacking::Tree& tree : packing->trees()) {
    ASSERT_EQ(tree.size(), 8U);
    std::vector<std::size_t> reached = {tree.front().parent};
    std::size_t parent_at = 0;
    for (const TreePacking::Branch& branch : tree) {
      while (reached.at(parent_at) != branch.parent) ++parent_at;  // in the order of the parents
      EXPECT_EQ(std::ranges::count(reached, branch.chip), 0);
      reached.push_back(branch.chip);
      const TreePacking::Cable& cable = packing->cables().at(branch.cable);
      EXPECT_EQ(std::set({cable.one, cable.other}), std::set({branch.chip, branch.parent}));
      ++uses[branch.cable];
    }
  }
  for (std::size_t i = 0; i < uses.size(); ++i) EXPECT_EQ(packing->cables()[i].trees, uses[i]);
}

// 8 of the 12 cables of a square of three are in a tree, so each carries two thirds of them.
TEST(PackingTest, ManyTreesLoadTheCablesOfASquareOfThreeEvenly) {
  const auto packing = Packed(kSquareOfThree, Instance(), 256);
  ASSERT_TRUE(packing.has_value());
  ASSERT_EQ(packing->cables().size(), 12U);
  for (const TreePacking::Cable& cable : packing->cables()) {
    EXPECT_LE(static_cast<double>(cable.trees),
              static_cast<double>(packing->trees().size()) * 2 / 3.0 * 1.015);
  }
}

// The part of all trees that a cable carries when the packing is perfect.
double ShareOf(const TreePacking& packing, const TreePacking::Cable& cable,
               const collective::Cut& worst) {
  return static_cast<double>(cable.rate) * static_cast<double>(worst.blocks) /
         static_cast<double>(worst.rate) / static_cast<double>(packing.chips().size());
}

// Random damaged UltraServers: no cable carries more than its share by the worst partition, rounded
// up to whole trees, though whole trees may be as much as a 64th of a slow cable's share.
TEST(PackingTest, TreesLoadTheCablesOfDamagedSetsEvenly) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    TorusLinks links = UltraServer();
    ChipMask mask = kAllChips;
    for (std::uint64_t i = rng.Below(9); i > 0; --i) mask &= ~(ChipMask{1} << rng.Below(64));
    for (std::uint64_t i = rng.Below(4); i > 0; --i) {
      testing::SlowCable(links, static_cast<int>(rng.Below(64)), torus::kAxes.at(rng.Below(3)),
                         static_cast<std::uint16_t>(rng.Below(3) * 500));
    }
    const auto packing = Packed(mask, links, 250);
    if (!packing.has_value()) continue;
    const ChipSet set = SetOf(MembersOf(mask), links);
    const collective::Cut worst = collective::WorstPartition(DomainLinksOf(links), mask);
    const double trees = static_cast<double>(packing->trees().size());
    for (const TreePacking::Cable& cable : packing->cables()) {
      const double share = ShareOf(*packing, cable, worst);
      EXPECT_LT(static_cast<double>(cable.trees), trees * share + 1) << "seed " << seed;
      EXPECT_LE(static_cast<double>(cable.trees), trees * share * 65 / 64) << "seed " << seed;
    }
    ASSERT_EQ(packing->chips().size(), set.size());
    testing::ExpectSpanningTrees(*packing);
    for (const TreePacking::Tree& tree : packing->trees()) {
      EXPECT_LE(tree.back().depth, 12U);
    }
  }
}

// Without a chip, the one opposite alone is no more than five links from all others.
TEST(PackingTest, TreesOfAnUltraServerAreHardlyHigherThanTheyMustBe) {
  for (const ChipMask mask : {kAllChips, kAllChips & ~ChipMask{1}}) {
    const auto packing = Packed(mask, UltraServer(), 200);
    ASSERT_TRUE(packing.has_value());
    std::size_t sum = 0;
    std::set<std::size_t> roots;
    for (const TreePacking::Tree& tree : packing->trees()) {
      EXPECT_GE(tree.back().depth, mask == kAllChips ? 6U : 5U);
      sum += tree.back().depth;
      roots.insert(tree.front().parent);
    }
    EXPECT_LE(static_cast<double>(sum), 6.7 * static_cast<double>(packing->trees().size()));
    EXPECT_GE(roots.size(), 7U);
  }
}

// Calls visit(part of each chip, number of parts) for every partition of so many chips.
template <typename Visit>
void ForEachPartition(std::size_t chips, std::vector<std::size_t>& part_of, std::size_t parts,
                      const Visit& visit) {
  if (part_of.size() == chips) return visit(part_of, parts);
  for (std::size_t part = 0; part <= parts; ++part) {
    part_of.push_back(part);
    ForEachPartition(chips, part_of, std::max(parts, part + 1), visit);
    part_of.pop_back();
  }
}

// Between the parts of any partition each tree uses a cable less than there are parts.
bool HasRoomBetweenAllParts(const TreePacking& packing, const std::vector<std::uint64_t>& most) {
  bool has_room = true;
  std::vector<std::size_t> part_of;
  ForEachPartition(packing.chips().size(), part_of, 0,
                   [&](const std::vector<std::size_t>& of, std::size_t parts) {
                     std::uint64_t room = 0;
                     for (std::size_t i = 0; i < most.size(); ++i) {
                       const TreePacking::Cable& cable = packing.cables()[i];
                       if (of[cable.one] != of[cable.other]) room += most[i];
                     }
                     has_room = has_room && room >= packing.trees().size() * (parts - 1);
                   });
  return has_room;
}

// 400 random limits of sets of seven chips, half of which are just enough or not.
TEST(PackingTest, CablesCanCarryTreesIfThereIsRoomBetweenAllParts) {
  Rng rng(3);
  int can = 0;
  for (int i = 0; i < 400; ++i) {
    const ChipMask mask = i % 2 == 0 ? 0x0376 : 0x0773;
    const auto packing = Packed(mask, Instance(), 12);
    ASSERT_TRUE(packing.has_value());
    std::vector<std::uint64_t> most;
    for (const TreePacking::Cable& cable : packing->cables()) {
      most.push_back(cable.trees + rng.Below(3) - std::min<std::uint64_t>(cable.trees, 1));
    }
    EXPECT_EQ(packing->CanCarry(most), HasRoomBetweenAllParts(*packing, most)) << i;
    if (!packing->CanCarry(most)) continue;
    ++can;
    const TreePacking exchanged = packing->Exchanged(most);
    for (std::size_t cable = 0; cable < most.size(); ++cable) {
      EXPECT_LE(exchanged.cables()[cable].trees, most[cable]) << i;
    }
  }
  EXPECT_GT(can, 100);
  EXPECT_LT(can, 300);
}

// Degraded cables have shares that are no whole numbers of trees: rounded up, each by itself, the
// fullest would be as much as 1.7 % above its share.
TEST(PackingTest, SlowCablesAreRoundedDownWhereOthersCanCarryMore) {
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    TorusLinks links = UltraServer();
    for (std::uint64_t i = rng.Below(6); i < 6; ++i) {
      testing::SlowCable(links, static_cast<int>(rng.Below(64)), torus::kAxes.at(rng.Below(3)),
                         static_cast<std::uint16_t>(300 + rng.Below(600)));
    }
    const TreePacking packing = testing::Packed(kAllChips, links, 250);
    const collective::Cut worst = collective::WorstPartition(DomainLinksOf(links), kAllChips);
    double fullest = 0;
    for (const TreePacking::Cable& cable : packing.cables()) {
      const double share =
          static_cast<double>(packing.trees().size()) * ShareOf(packing, cable, worst);
      fullest = std::max(fullest, static_cast<double>(cable.trees) / share);
    }
    EXPECT_LE(fullest, 1.0125) << "seed " << seed;
    sum += fullest;
  }
  EXPECT_LE(sum / 40, 1.005);
}

// The cable from chip 0 to its next one along X works at a thousandth of its rate.
TEST(PackingTest, AVerySlowCableCarriesTreesOnlyWhereItIsMissed) {
  TorusLinks links = UltraServer();
  testing::SlowCable(links, 0, torus::Axis::kX, 1);
  const auto is_slow = [](const TreePacking& packing, const TreePacking::Cable& cable) {
    return packing.chips()[cable.one] == ChipIndex(0) &&
           packing.chips()[cable.other] == ChipIndex(1);
  };
  const TreePacking whole = testing::Packed(kAllChips, links, 100);
  EXPECT_EQ(whole.cables().size(), 191U);
  EXPECT_TRUE(std::ranges::none_of(
      whole.cables(), [&](const TreePacking::Cable& cable) { return is_slow(whole, cable); }));
  const TreePacking pair = testing::Packed(0x3, links, 100);
  ASSERT_EQ(pair.cables().size(), 1U);
  EXPECT_TRUE(is_slow(pair, pair.cables()[0]));
  EXPECT_EQ(pair.cables()[0].trees, pair.trees().size());
}

TEST(PackingTest, ATreeIsAsHighAsItIsFromEachOfItsRoots) {
  auto packing = Packed(kAllChips & ~ChipMask{0x8042}, UltraServer(), 20);
  ASSERT_TRUE(packing.has_value());
  for (std::size_t tree = 0; tree < packing->trees().size(); ++tree) {
    const std::vector<std::size_t> heights = packing->HeightsOf(tree);
    ASSERT_EQ(heights.size(), packing->chips().size());
    for (std::size_t root = 0; root < heights.size(); ++root) {
      EXPECT_EQ(packing->From(tree, root).back().depth, heights[root]);
    }
    packing->SetRoot(tree, 5);
    EXPECT_EQ(packing->trees()[tree].front().parent, 5U);
    EXPECT_EQ(packing->HeightsOf(tree), heights);
  }
}

TEST(PackingTest, RepeatedTreesLoadEachCableSoManyTimesAsMuch) {
  const auto once = Packed(kSquareOfThree, Instance(), 20);
  ASSERT_TRUE(once.has_value());
  TreePacking packing = *once;
  packing.Repeat(3);
  const std::size_t count = once->trees().size();
  ASSERT_EQ(packing.trees().size(), 3 * count);
  for (std::size_t i = 0; i < 3 * count; ++i) {
    EXPECT_EQ(packing.trees()[i].front().parent, once->trees()[i % count].front().parent);
    EXPECT_EQ(packing.HeightsOf(i), once->HeightsOf(i % count));
  }
  for (std::size_t i = 0; i < once->cables().size(); ++i) {
    EXPECT_EQ(packing.cables()[i].trees, 3 * once->cables()[i].trees);
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
  EXPECT_FALSE(Packed(0xffff, links, 4).has_value());
  EXPECT_TRUE(Packed(0xfffe, links, 4).has_value());
}

}  // namespace
}  // namespace tahoma::sim

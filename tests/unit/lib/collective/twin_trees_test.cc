// Trees of a broadcast through several domains: each reaches every chip of all of them, together
// they respect every link and every NIC, and they come near what a search of all parts of a small
// set allows.

#include "lib/collective/twin_trees.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "tests/unit/lib/collective/support.h"

namespace tahoma::collective {
namespace {

using torus::Axis;
using torus::ChipMask;
using torus::Direction;

constexpr std::uint64_t kNic = 25'000'000'000;

TwinDomains Alike(const DomainLinks& links, ChipMask members, int root = 0) {
  TwinDomains domains{.own = links, .others = links, .members = members, .root = root, .nics = {}};
  domains.nics.fill(kNic);
  return domains;
}

// Domains of random chips, links and NICs.
TwinDomains RandomDomains(Rng& rng) {
  const RandomSet set(rng, 2 + static_cast<int>(rng.Below(9)));
  TwinDomains domains = Alike(set.links, set.members, std::countr_zero(set.members));
  for (std::uint64_t i = rng.Below(4); i > 0; --i) {
    SlowCable(domains.others, static_cast<int>(rng.Below(16)), torus::kAxes.at(rng.Below(2)),
              Direction::kPlus, static_cast<std::uint16_t>(rng.Below(1001)));
  }
  for (std::uint64_t i = rng.Below(4); i > 0; --i) {
    domains.nics.at(rng.Below(kChipsMax)) = kNic * rng.Below(1001) / 1000;
  }
  return domains;
}

// The least rate into any part of the other domains, and of the root's by its links, by a search
// of all parts.
std::uint64_t LeastOverLinks(const TwinDomains& domains) {
  const ChipMask others = domains.members & ~(ChipMask{1} << domains.root);
  std::uint64_t least = ~std::uint64_t{0};
  for (ChipMask part = others; part != 0; part = (part - 1) & others) {
    least = std::min(least, RateInto(domains.own, part, domains.members));
  }
  return least;
}
std::uint64_t LeastIntoTwins(const TwinDomains& domains) {
  std::uint64_t least = ~std::uint64_t{0};
  for (ChipMask part = domains.members; part != 0; part = (part - 1) & domains.members) {
    std::uint64_t rate = RateInto(domains.others, part, domains.members);
    for (std::size_t chip = 0; chip < kChipsMax; ++chip) {
      if ((part >> chip & 1) != 0) rate += domains.nics[chip];
    }
    least = std::min(least, rate);
  }
  return least;
}

// The depth of each chip, each of which is reached once, by a parent that was reached before it.
std::map<int, std::size_t> DepthsIn(const std::vector<Branch>& branches,
                                    std::map<int, std::size_t> depths,
                                    const std::map<int, std::size_t>& entries = {}) {
  for (const Branch& branch : branches) {
    if (branch.parent == kOutside) {
      EXPECT_TRUE(entries.contains(branch.chip));
      EXPECT_EQ(branch.depth, entries.at(branch.chip));
    } else {
      EXPECT_TRUE(depths.contains(branch.parent));
      EXPECT_EQ(branch.depth, depths[branch.parent] + 1);
    }
    EXPECT_TRUE(depths.emplace(branch.chip, branch.depth).second);
  }
  return depths;
}

void ExpectTrees(const std::vector<TwinTree>& trees, const TwinDomains& domains) {
  const auto chips = static_cast<std::size_t>(std::popcount(domains.members));
  for (const TwinTree& tree : trees) {
    EXPECT_GT(tree.rate, 0U);
    const std::map<int, std::size_t> own = DepthsIn(tree.own, {{domains.root, 0}});
    EXPECT_TRUE(own.size() == chips || tree.own.empty());
    EXPECT_EQ(DepthsIn(tree.twins, {}, own).size(), chips);
  }
}

// No neighbours carry more than the links between them, in either kind of domain, and no NIC more
// than its rate: out of the root's domain, into it, and in each of so many others.
void ExpectNothingOverloaded(const std::vector<TwinTree>& trees, const TwinDomains& domains) {
  std::map<std::pair<int, int>, std::uint64_t> own;
  std::map<std::pair<int, int>, std::uint64_t> others;
  std::map<int, std::uint64_t> handed;
  std::uint64_t back = 0;
  for (const TwinTree& tree : trees) {
    for (const Branch& branch : tree.own) own[{branch.parent, branch.chip}] += tree.rate;
    for (const Branch& branch : tree.twins) {
      if (branch.parent == kOutside) handed[branch.chip] += tree.rate;
      if (branch.parent != kOutside) others[{branch.parent, branch.chip}] += tree.rate;
    }
    if (tree.own.empty()) back += tree.rate;
  }
  for (const auto& [loads, links] :
       {std::pair(&own, &domains.own), std::pair(&others, &domains.others)}) {
    for (const auto& [ends, load] : *loads) {
      const ChipMask to = ChipMask{1} << ends.second;
      EXPECT_LE(load, RateInto(*links, to, to | ChipMask{1} << ends.first));
    }
  }
  for (ChipMask left = domains.members; left != 0; left &= left - 1) {
    const int chip = std::countr_zero(left);
    const std::uint64_t nic = domains.nics[static_cast<std::size_t>(chip)];
    EXPECT_LE(handed[chip], nic);
    if (chip != domains.root) {
      EXPECT_LE(back, nic);
    }
    for (const std::uint64_t count : {1U, 2U, 7U, 500U}) {  // of other domains
      EXPECT_LE(handed[chip] * (count - 1) / count + back / count, nic);
    }
  }
}

TEST(TwinTreesTest, TreesOfSmallSetsComeNearWhatASearchOfAllPartsAllows) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const TwinDomains domains = RandomDomains(rng);
    const std::vector<TwinTree> trees = PackTwinTrees(domains);
    ExpectTrees(trees, domains);
    ExpectNothingOverloaded(trees, domains);
    const TwinRates rates = TwinRatesOf(domains);
    const std::uint64_t into = LeastIntoTwins(domains);
    EXPECT_EQ(rates.through, std::min(LeastOverLinks(domains), into));
    EXPECT_LE(rates.sum(), into);
    EXPECT_LE(RateOf(trees), rates.sum());
    EXPECT_GE(RateOf(trees), rates.sum() - rates.sum() / 50);
    if (HasFailure()) break;
  }
}

TEST(TwinTreesTest, TreesOfDamagedUltraServersRespectLinksAndNics) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    TwinDomains domains = Alike(UltraServer(), ~ChipMask{0}, static_cast<int>(rng.Below(64)));
    for (DomainLinks* links : {&domains.own, &domains.others}) {
      for (std::uint64_t cables = rng.Below(4); cables > 0; --cables) {
        SlowCable(*links, static_cast<int>(rng.Below(64)), torus::kAxes.at(rng.Below(3)),
                  Direction::kPlus, static_cast<std::uint16_t>(rng.Below(1001)));
      }
    }
    if (seed % 3 == 0) domains.nics.at(rng.Below(kChipsMax)) = 0;
    const std::vector<TwinTree> trees = PackTwinTrees(domains);
    ExpectTrees(trees, domains);
    ExpectNothingOverloaded(trees, domains);
    EXPECT_GE(RateOf(trees), TwinRatesOf(domains).sum() * 97 / 100);
    if (HasFailure()) break;
  }
}

TEST(TwinTreesTest, HealthyUltraServersTakeAllOfTheRootsLinksAndMostOfItsNic) {
  const TwinDomains domains = Alike(UltraServer(), ~ChipMask{0});
  const TwinRates rates = TwinRatesOf(domains);
  EXPECT_EQ(rates.through, 640'000'000'000U);
  EXPECT_EQ(rates.back, 20'000'000'000U);
  const std::vector<TwinTree> trees = PackTwinTrees(domains);
  EXPECT_GE(RateOf(trees), rates.sum() * 99 / 100);
  // Six links to the farthest chip, and as many again from where its domain is entered.
  EXPECT_EQ(HeightAbout(domains), 12U);
  EXPECT_LE(HeightOf(trees), 14U);
}

// An instance's 16 NICs get less than the root's links send.
TEST(TwinTreesTest, TheNicsOfInstancesAreFull) {
  const TwinDomains domains = Alike(Instance(), Instance().chips());
  EXPECT_EQ(TwinRatesOf(domains).through, 16 * kNic);
  EXPECT_EQ(TwinRatesOf(domains).back, 0U);
  EXPECT_GE(RateOf(PackTwinTrees(domains)), 16 * kNic * 99 / 100);
}

TEST(TwinTreesTest, NothingComesBackAndNobodyEntersWhereANicIsDown) {
  TwinDomains domains = Alike(UltraServer(), ~ChipMask{0});
  domains.nics[5] = 0;
  for (const TwinTree& tree : PackTwinTrees(domains)) {
    EXPECT_FALSE(tree.own.empty());
    for (const Branch& branch : tree.twins) {
      EXPECT_TRUE(branch.parent != kOutside || branch.chip != 5);
    }
  }
}

TEST(TwinTreesTest, WhatIsCutOffHasNoTrees) {
  TwinDomains domains = Alike(Instance(), Instance().chips());
  domains.own.Kill(ChipMask{1} << 5);
  EXPECT_TRUE(PackTwinTrees(domains).empty());
  EXPECT_EQ(TwinRatesOf(domains).sum(), 0U);
  // Other domains need no links where NICs lead to the chip.
  std::swap(domains.own, domains.others);
  EXPECT_GE(RateOf(PackTwinTrees(domains)), kNic * 99 / 100);
  domains.nics[5] = 0;
  EXPECT_TRUE(PackTwinTrees(domains).empty());
}

TEST(TwinTreesTest, AChipAloneHasNoTrees) {
  EXPECT_TRUE(PackTwinTrees(Alike(Instance(), 0b1)).empty());
  EXPECT_EQ(TwinRatesOf(Alike(Instance(), 0b1)).sum(), 0U);
}

TEST(TwinTreesTest, ChunksAreAsShortAsTheStartOfAnotherAllows) {
  const LinkCosts costs;
  const Picoseconds start = costs.step + costs.hop;
  const std::uint64_t rate = 660'000'000'000;
  for (const std::size_t domains : {2U, 20U, 60U, 512U}) {
    for (std::uint64_t bytes = 1; bytes <= std::uint64_t{8} << 30U; bytes = bytes * 3 + 1) {
      const TwinCourse course = TwinCourseOf(bytes, rate, domains, costs);
      const Picoseconds chunk = TimeAtMost(bytes, course.chunks * rate / 1'000'000, 1'000'000);
      const auto others = static_cast<Picoseconds::rep>(course.stripes - 1);
      ASSERT_GE(course.chunks, 1U);
      EXPECT_TRUE(course.chunks == 1 || chunk * others >= start) << bytes;
      EXPECT_TRUE(course.chunks == 3072 || chunk * others <= 3 * start) << bytes;
      EXPECT_GE(course.step, chunk + start) << bytes;
    }
  }
}

TEST(TwinTreesTest, PartsForManyDomainsAreNotCutShorterForTheSakeOfStripes) {
  const std::uint64_t rate = 660'000'000'000;
  const auto stripes = [&](std::size_t domains) {
    return TwinCourseOf(256U << 20U, rate, domains, {}).stripes;
  };
  EXPECT_EQ(stripes(8), 8U);
  EXPECT_EQ(stripes(40), 4U);
  EXPECT_EQ(stripes(512), 2U);
}

TEST(TwinTreesTest, EachLinkIsAsSlowAsTheSlowerOfTwo) {
  DomainLinks one = Instance();
  DomainLinks other = Instance();
  SlowCable(one, 3, Axis::kX, Direction::kPlus, 500);
  SlowCable(other, 3, Axis::kX, Direction::kPlus, 700);
  SlowCable(other, 9, Axis::kY, Direction::kPlus, 0);
  const DomainLinks slower = one.SlowerOf(other);
  for (int arc = 0; arc < one.arc_count(); ++arc) {
    const auto at = static_cast<Arc>(arc);
    EXPECT_EQ(slower.rate(at), std::min(one.rate(at), other.rate(at)));
  }
}

}  // namespace
}  // namespace tahoma::collective

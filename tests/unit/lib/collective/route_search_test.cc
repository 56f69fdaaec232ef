// Routes against cuts, a search through all parts of a torus, and the fractional optimum.

#include "tests/unit/lib/collective/route_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "lib/base/rng.h"
#include "lib/collective/routes.h"
#include "tests/unit/lib/collective/support.h"

namespace tahoma::collective {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::ChipMask;
using torus::Direction;

constexpr ChipMask kAll = ~ChipMask{0};
constexpr Direction kPlus = Direction::kPlus;

struct Cable {
  int chip;
  Axis axis;
};

// Both directions of the cable that leaves the chip in plus direction.
void Remove(DomainLinks& links, const Cable& cable) {
  SlowCable(links, cable.chip, cable.axis, kPlus, 0);
}

std::vector<Demand> AllPairsOf(ChipMask chips) {
  std::vector<Demand> demands;
  for (int from = 0; from < kChipsMax; ++from) {
    for (int to = 0; to < kChipsMax; ++to) {
      if (from == to || (chips >> from & 1) == 0 || (chips >> to & 1) == 0) continue;
      demands.push_back(
          {.from = static_cast<std::uint8_t>(from), .to = static_cast<std::uint8_t>(to)});
    }
  }
  return demands;
}

std::vector<std::uint8_t> Ascending(ChipMask chips) {
  std::vector<std::uint8_t> order;
  for (ChipMask left = chips; left != 0; left &= left - 1) {
    order.push_back(static_cast<std::uint8_t>(std::countr_zero(left)));
  }
  return order;
}

std::vector<Demand> ShiftOf(const std::vector<std::uint8_t>& order) {
  std::vector<Demand> demands;
  for (std::size_t i = 0; i < order.size(); ++i) {
    demands.push_back({.from = order[i], .to = order[(i + 1) % order.size()]});
  }
  return demands;
}

double Seconds(const Cut& cut, std::uint32_t parts = 1) {
  return static_cast<double>(cut.blocks) / parts / static_cast<double>(cut.rate);
}

// Some links slower or down, in one direction or both.
void Damage(DomainLinks& links, Rng& rng, int chips, std::uint64_t axes) {
  for (std::uint64_t i = rng.Below(5); i > 0; --i) {
    const ChipIndex chip(static_cast<int>(rng.Below(static_cast<std::uint64_t>(chips))));
    const Axis axis = torus::kAxes.at(rng.Below(axes));
    if (rng.Below(2) == 0) {
      Remove(links, {.chip = chip.value(), .axis = axis});
    } else {
      links.SetPermille({.chip = chip,
                         .axis = axis,
                         .direction = torus::kDirections.at(rng.Below(2)),
                         .permille = static_cast<std::uint16_t>(rng.Below(3) * 500)});
    }
  }
}

// The optimum when messages may be cut at will, from both sides: links have lengths that grow with
// what they carry, every message takes a shortest route each time, and the mean of these routes
// tends to the optimum (multiplicative weights). With any lengths no routes are faster than what
// the messages are long, for all links' rates times their lengths.
struct Fractional {
  double at_least = 0;
  double at_most = std::numeric_limits<double>::infinity();
};

class FractionalSearch {
 public:
  FractionalSearch(const DomainLinks& links, ChipMask through, const std::vector<Demand>& demands)
      : links_(links), through_(through), from_(kChipsMax) {
    for (const Demand& demand : demands) from_[demand.from].push_back(demand);
    for (int arc = 0; arc < links.arc_count(); ++arc) {
      const int chip = arc / kPortsPerChip;
      const bool inside = (through >> chip & 1) != 0 && links.rate(Arc(arc)) != 0 &&
                          (through >> links.to(Arc(arc)) & 1) != 0;
      length_.push_back(inside ? 1.0 / static_cast<double>(links.rate(Arc(arc))) : 0);
    }
    carried_.assign(length_.size(), 0);
  }

  Fractional Run(int rounds) {
    Fractional found;
    for (int round = 1; round <= rounds; ++round) {
      double total = 0;
      for (std::size_t arc = 0; arc < length_.size(); ++arc) total += length_[arc] * Rate(arc);
      found.at_least = std::max(found.at_least, SendOnShortest() / total);
      double most = 0;
      for (std::size_t arc = 0; arc < length_.size(); ++arc) most = std::max(most, Time(arc));
      found.at_most = std::min(found.at_most, most / round);
      const double steepness = 10 * std::sqrt(static_cast<double>(round));
      for (std::size_t arc = 0; arc < length_.size(); ++arc) {
        if (length_[arc] == 0) continue;
        length_[arc] = std::exp(steepness * (Time(arc) / most - 1)) / Rate(arc);
      }
    }
    return found;
  }

 private:
  double Rate(std::size_t arc) const {
    return static_cast<double>(links_.rate(static_cast<Arc>(arc)));
  }
  double Time(std::size_t arc) const { return length_[arc] == 0 ? 0 : carried_[arc] / Rate(arc); }

  // Returns the lengths of all messages.
  double SendOnShortest() {
    double sum = 0;
    for (std::size_t from = 0; from < kChipsMax; ++from) {
      if (from_[from].empty()) continue;
      Search(from);
      for (const Demand& demand : from_[from]) {
        sum += distance_[demand.to] * demand.blocks;
        for (std::size_t at = demand.to; at != from; at = came_by_[at] / kPortsPerChip) {
          carried_[came_by_[at]] += demand.blocks;
        }
      }
    }
    return sum;
  }
  void Search(std::size_t from) {
    distance_.fill(std::numeric_limits<double>::infinity());
    distance_[from] = 0;
    std::vector<std::size_t> open;
    for (ChipMask left = through_ & links_.chips(); left != 0; left &= left - 1) {
      open.push_back(static_cast<std::size_t>(std::countr_zero(left)));
    }
    while (!open.empty()) {
      const auto nearest =
          std::ranges::min_element(open, {}, [&](std::size_t chip) { return distance_[chip]; });
      const std::size_t chip = *nearest;
      open.erase(nearest);
      for (std::size_t arc = chip * kPortsPerChip; arc < (chip + 1) * kPortsPerChip; ++arc) {
        if (length_[arc] == 0) continue;
        const auto to = static_cast<std::size_t>(links_.to(static_cast<Arc>(arc)));
        if (distance_[chip] + length_[arc] >= distance_[to]) continue;
        distance_[to] = distance_[chip] + length_[arc];
        came_by_[to] = arc;
      }
    }
  }

  const DomainLinks& links_;
  const ChipMask through_;
  std::vector<std::vector<Demand>> from_;
  std::vector<double> length_;  // 0 = not usable
  std::vector<double> carried_;
  std::array<double, kChipsMax> distance_{};
  std::array<std::size_t, kChipsMax> came_by_{};
};

// The worst of all parts of the first 16 chips, one by one.
double WorstOfAllParts(const DomainLinks& links, const std::vector<Demand>& demands) {
  double worst = 0;
  for (ChipMask part = 1; part < 0xffff; ++part) {
    std::uint64_t blocks = 0;
    for (const Demand& demand : demands) {
      blocks += (part >> demand.to & 1) != 0 && (part >> demand.from & 1) == 0 ? demand.blocks : 0;
    }
    if (blocks == 0) continue;
    std::uint64_t rate = 0;
    for (int arc = 0; arc < links.arc_count(); ++arc) {
      if (links.rate(Arc(arc)) == 0) continue;
      const bool enters =
          (part >> (arc / kPortsPerChip) & 1) == 0 && (part >> links.to(Arc(arc)) & 1) != 0;
      rate += enters ? links.rate(Arc(arc)) : 0;
    }
    worst = std::max(worst, Seconds({.blocks = blocks, .rate = rate}));
  }
  return worst;
}

TEST(RouteSearchTest, EveryPartGoesFromItsChipToTheOtherOverLinksThatAreUp) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    DomainLinks links = UltraServer();
    Damage(links, rng, 64, 3);
    const ChipMask chips = rng.Next() & rng.Next();
    const ChipMask through = ThroughOf(links, chips);
    const std::vector<Demand> demands = AllPairsOf(chips);
    const auto routes = FindRoutes(links, through, demands,
                                   {.parts = 4, .goal = WorstExchangeCut(links, chips, through)});
    ASSERT_TRUE(routes.has_value());
    std::vector<std::uint64_t> carried(static_cast<std::size_t>(links.arc_count()));
    std::size_t longest = 0;
    for (std::size_t i = 0; i < demands.size(); ++i) {
      for (std::uint32_t part = 0; part < 4; ++part) {
        int at = demands[i].from;
        for (const Arc arc : routes->Route(i, part)) {
          ASSERT_EQ(arc / kPortsPerChip, at);
          ASSERT_NE(links.rate(arc), 0u);
          at = links.to(arc);
          ASSERT_NE(through >> at & 1, 0u);
          ++carried[arc];
        }
        ASSERT_EQ(at, demands[i].to);
        longest = std::max(longest, routes->Route(i, part).size());
      }
    }
    EXPECT_EQ(routes->longest(), longest);
    double fullest = 0;
    for (std::size_t arc = 0; arc < carried.size(); ++arc) {
      if (carried[arc] == 0) continue;
      fullest = std::max(
          fullest, Seconds({.blocks = carried[arc], .rate = links.rate(static_cast<Arc>(arc))}));
    }
    EXPECT_DOUBLE_EQ(Seconds(routes->fullest()), fullest);
  }
}

TEST(RouteSearchTest, OneCableLessCostsAnAllToAllWhatTheWorstCutSays) {
  struct Case {
    ChipMask chips;
    std::vector<Cable> removed;
    std::uint32_t parts;
    double cost;  // against the whole torus: what the cut says
  };
  // Healthy: 8 blocks on a link of 4x4, 32 of 4x4x2, and 32 on a Z link (64 X and Y) of 4x4x4.
  for (const Case& of : {
           Case{0xffff, {{5, Axis::kX}}, 4, 8.0 / 7},
           Case{0xffff, {{5, Axis::kY}}, 4, 8.0 / 7},
           Case{0xffff, {{5, Axis::kX}, {10, Axis::kY}}, 4, 8.0 / 7},
           Case{0xffff, {{5, Axis::kX}, {9, Axis::kX}}, 4, 8.0 / 6},
           Case{0xffff'ffff, {{5, Axis::kX}}, 1, 1},
           Case{0xffff'ffff, {{5, Axis::kZ}}, 4, 16.0 / 15},
           Case{kAll, {{5, Axis::kX}}, 1, 1},
           Case{kAll, {{5, Axis::kY}}, 1, 1},
           Case{kAll, {{5, Axis::kZ}}, 2, 32.0 / 31},
           Case{kAll, {{5, Axis::kZ}, {22, Axis::kZ}}, 2, 32.0 / 31},
       }) {
    DomainLinks links = UltraServer();
    const double whole = Seconds(WorstExchangeCut(links, of.chips, of.chips));
    for (const Cable& cable : of.removed) Remove(links, cable);
    const Cut cut = WorstExchangeCut(links, of.chips, of.chips);
    EXPECT_NEAR(Seconds(cut) / whole, of.cost, 1e-9) << of.chips;
    const auto routes =
        FindRoutes(links, of.chips, AllPairsOf(of.chips), {.parts = of.parts, .goal = cut});
    ASSERT_TRUE(routes.has_value());
    EXPECT_GE(Seconds(routes->fullest(), of.parts), Seconds(cut) * (1 - 1e-9));
    EXPECT_LE(Seconds(routes->fullest(), of.parts), Seconds(cut) * 1.02)
        << std::popcount(of.chips) << " without " << of.removed.size() << " from "
        << of.removed[0].chip;
  }
}

TEST(RouteSearchTest, CuttingAtWillIsHardlyFaster) {
  double sum = 0;
  for (std::uint64_t seed = 0; seed <= 12; ++seed) {
    Rng rng(seed);
    DomainLinks links = Instance();
    if (seed == 0) Remove(links, {.chip = 5, .axis = Axis::kX});
    if (seed == 1) links.Kill(ChipMask{1} << 6);
    if (seed > 1) Damage(links, rng, 16, 2);
    const ChipMask chips = seed == 1 ? 0xffff & ~(ChipMask{1} << 6) : 0xffff;
    const std::vector<Demand> demands = AllPairsOf(chips);
    const Cut cut = WorstExchangeCut(links, chips, chips);
    const Fractional optimum = FractionalSearch(links, chips, demands).Run(3000);
    // No routes beat the cut, and cutting at will comes close to it: they are both the optimum.
    EXPECT_GE(optimum.at_most, std::max(optimum.at_least, Seconds(cut)) * (1 - 1e-9)) << seed;
    EXPECT_LE(optimum.at_most, Seconds(cut) * 1.05) << seed;
    const auto few = FindRoutes(links, chips, demands, {.parts = 4, .goal = cut});
    ASSERT_TRUE(few.has_value());
    const auto routes =
        FindRoutes(links, chips, demands, {.parts = 16, .goal = cut, .begin = &*few});
    ASSERT_TRUE(routes.has_value());
    EXPECT_GE(Seconds(routes->fullest(), 16), optimum.at_least * (1 - 1e-9)) << seed;
    EXPECT_LE(Seconds(routes->fullest(), 16), optimum.at_most * 1.05) << seed;
    sum += Seconds(routes->fullest(), 16) / optimum.at_most;
  }
  EXPECT_LE(sum / 13, 1.02);
}

TEST(RouteSearchTest, MorePartsAreNeverFullerAndManyComeCloseToTheCut) {
  double sum = 0;
  constexpr int kSeeds = 20;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Rng rng(seed);
    DomainLinks links = UltraServer();
    Damage(links, rng, 64, 3);
    const ChipMask chips = rng.Next() & rng.Next() & (seed % 2 == 0 ? kAll : 0xffff'ffff);
    const ChipMask through = ThroughOf(links, chips);
    const Cut cut = WorstExchangeCut(links, chips, through);
    const std::vector<Demand> demands = AllPairsOf(chips);
    std::optional<Routes> routes;
    double least = std::numeric_limits<double>::infinity();
    for (const std::uint32_t parts : {1U, 2U, 4U, 8U, 16U}) {
      routes = FindRoutes(links, through, demands,
                          {.parts = parts, .goal = cut, .begin = routes ? &*routes : nullptr});
      ASSERT_TRUE(routes.has_value());
      const double now = Seconds(routes->fullest(), parts);
      EXPECT_GE(now, Seconds(cut) * (1 - 1e-9)) << seed;
      EXPECT_LE(now, least * (1 + 1e-9)) << seed;
      least = now;
    }
    EXPECT_LE(least, Seconds(cut) * 1.16) << seed;
    sum += least / Seconds(cut);
  }
  EXPECT_LE(sum / kSeeds, 1.06);
}

TEST(RouteSearchTest, WhatIsNoFullerThanTheGoalStaysOnItsRoutes) {
  const DomainLinks links = UltraServer();
  const std::vector<Demand> demands = AllPairsOf(kAll);
  const auto routes =
      FindRoutes(links, kAll, demands, {.goal = WorstExchangeCut(links, kAll, kAll)});
  ASSERT_TRUE(routes.has_value());
  const DimensionOrderRoutes direct(torus::kUltraServerShape);
  for (std::size_t i = 0; i < demands.size(); ++i) {
    EXPECT_TRUE(
        std::ranges::equal(routes->Route(i, 0), direct.Route(demands[i].from, demands[i].to)));
  }
}

TEST(RouteSearchTest, LargeMessagesCountForWhatTheyAre) {
  DomainLinks links = Instance();
  Remove(links, {.chip = 5, .axis = Axis::kX});
  // Three blocks from 5 to 6 and one on each of two routes round it.
  const std::vector<Demand> demands = {
      {.from = 5, .to = 6, .blocks = 3}, {.from = 1, .to = 2}, {.from = 9, .to = 10}};
  const auto routes = FindRoutes(links, 0xffff, demands,
                                 {.parts = 3, .goal = {.blocks = 1, .rate = 128'000'000'000}});
  ASSERT_TRUE(routes.has_value());
  // 5 has three cables left for its three blocks.
  EXPECT_NEAR(Seconds(routes->fullest(), 3) * 128e9, 1.0, 1e-9);
}

TEST(RouteSearchTest, ThereIsNothingForWhoIsCutOff) {
  DomainLinks links = Instance();
  links.Kill(1);
  const std::vector<Demand> demands = {{.from = 1, .to = 2}, {.from = 3, .to = 0}};
  EXPECT_FALSE(FindRoutes(links, 0xffff, demands, {.goal = {.blocks = 1, .rate = 1}}).has_value());
  EXPECT_TRUE(
      FindRoutes(links, 0xffff, std::span(demands).first(1), {.goal = {.blocks = 1, .rate = 1}})
          .has_value());
}

TEST(RouteSearchTest, TheWorstPartOfAnInstanceIsFoundWithoutLookingAtAll) {
  int exact = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Rng rng(seed);
    DomainLinks links = Instance();
    Damage(links, rng, 16, 2);
    const ChipMask chips = seed % 3 == 0 ? rng.Below(0xffff) | 0x11 : 0xffff;
    const double all = WorstOfAllParts(links, AllPairsOf(chips));
    const double found = Seconds(WorstExchangeCut(links, chips, 0xffff));
    exact += found >= all * (1 - 1e-9) ? 1 : 0;  // what all links together carry may be worse
    EXPECT_GE(found, all * 0.95) << seed;
    const std::vector<std::uint8_t> order = Ascending(chips);
    EXPECT_NEAR(Seconds(WorstShiftCut(links, order, 0xffff)),
                WorstOfAllParts(links, ShiftOf(order)), 1e-15)
        << seed;
  }
  EXPECT_GE(exact, 10);
}

TEST(DomainLinksTest, ARepairedTorusHasTheRateOfTheFastestLinkOfEachAxis) {
  DomainLinks links = UltraServer();
  Remove(links, {.chip = 5, .axis = Axis::kX});
  links.Kill(ChipMask{1} << 40);
  links.SetPermille({.chip = ChipIndex(7), .axis = Axis::kZ, .direction = kPlus, .permille = 250});
  const DomainLinks whole = links.Repaired();
  const DomainLinks healthy = UltraServer();
  for (int arc = 0; arc < healthy.arc_count(); ++arc) {
    EXPECT_EQ(whole.rate(static_cast<Arc>(arc)), healthy.rate(static_cast<Arc>(arc)));
  }
}

}  // namespace
}  // namespace tahoma::collective

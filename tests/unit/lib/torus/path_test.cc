// Routes and rings: minimal, connected, and inside their box.

#include "lib/torus/path.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>
#include <utility>

namespace tahoma::torus {
namespace {

int Apart(const Shape& torus, ChipIndex a, ChipIndex b) {
  return torus.HopDistance(torus.CoordOf(a), torus.CoordOf(b));
}

TEST(RouteTest, EveryRouteIsMinimalAndConnected) {
  for (int from = 0; from < 64; ++from) {
    for (int to = 0; to < 64; ++to) {
      const auto hops = Route(kUltraServerShape, ChipIndex(from), ChipIndex(to));
      EXPECT_EQ(static_cast<int>(hops.size()),
                Apart(kUltraServerShape, ChipIndex(from), ChipIndex(to)));
      ChipIndex at(from);
      for (const Hop& hop : hops) {
        EXPECT_EQ(hop.from, at);
        EXPECT_EQ(kUltraServerShape.IndexOf(*kUltraServerShape.Neighbour(
                      kUltraServerShape.CoordOf(at), hop.axis, hop.direction)),
                  hop.to);
        at = hop.to;
      }
      EXPECT_EQ(at, ChipIndex(to));
    }
  }
}

TEST(RouteTest, UniformTrafficLoadsEveryLinkOfAnInstanceEqually) {
  std::map<std::pair<ChipIndex, ChipIndex>, int> load;
  for (int from = 0; from < 16; ++from) {
    for (int to = 0; to < 16; ++to) {
      for (const Hop& hop : Route(kInstanceShape, ChipIndex(from), ChipIndex(to))) {
        ++load[{hop.from, hop.to}];
      }
    }
  }
  EXPECT_EQ(load.size(), 64U);
  // 16 * 16 pairs at an average distance of 2 over 64 directed links.
  for (const auto& [link, count] : load) EXPECT_EQ(count, 8);
}

TEST(GrayCycleTest, VisitsEachChipOfEveryBoxOnceOverLinksInsideIt) {
  for (const Shape& torus : {kInstanceShape, kUltraServerShape}) {
    for (const Box& box : BoxTable::Of(torus).all()) {
      const auto cycle = GrayCycle(box, torus);
      ChipMask seen = 0;
      for (std::size_t i = 0; i < cycle.size(); ++i) {
        seen |= MaskOf(cycle[i]);
        if (cycle.size() > 1) {
          EXPECT_EQ(Apart(torus, cycle[i], cycle[(i + 1) % cycle.size()]), 1);
        }
      }
      EXPECT_EQ(seen, box.mask);
    }
  }
}

TEST(InstanceCyclesTest, TogetherUseEachLinkOfTheInstanceOnce) {
  LinkMask used;
  int steps = 0;
  for (const auto& cycle : InstanceCycles()) {
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const auto hops = Route(kInstanceShape, ChipIndex(cycle[i]), ChipIndex(cycle[(i + 1) % 16]));
      ASSERT_EQ(hops.size(), 1U);
      const LinkMask link = LinkOf(kInstanceShape, hops[0].from, hops[0].axis, hops[0].direction);
      EXPECT_FALSE(used.Intersects(link));
      for (const Axis axis : kAxes) used.along(axis) |= link.along(axis);
      ++steps;
    }
  }
  EXPECT_EQ(steps, 32);
  EXPECT_EQ(used.count(), 32);
}

TEST(BoxChipsTest, AddressesThatDifferInOneBitAreOneLinkApart) {
  for (const Box& box : BoxTable::Of(kUltraServerShape).all()) {
    const auto chips = BoxChips(box, kUltraServerShape);
    const auto count = chips.size();
    std::set<ChipIndex> distinct(chips.begin(), chips.end());
    EXPECT_EQ(distinct.size(), count);
    for (std::size_t n = 0; n < count; ++n) {
      for (std::size_t bit = 1; bit < count; bit <<= 1U) {
        EXPECT_EQ(Apart(kUltraServerShape, chips[n], chips[n ^ bit]), 1);
      }
    }
  }
}

}  // namespace
}  // namespace tahoma::torus

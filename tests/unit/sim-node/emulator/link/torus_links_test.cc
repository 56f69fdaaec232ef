// Rates are the catalogue's, routes are checked hop by hop on every pair of chips.

#include "sim-node/emulator/link/torus_links.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::Direction;

TorusLinks UltraServer() { return {torus::kUltraServerShape, hw::kTrainium2.links}; }
TorusLinks Instance() { return {torus::kInstanceShape, hw::kTrainium2.links}; }

// Follows the route and returns where it ends; fails if a hop does not begin where the last ended.
ChipIndex EndOf(const TorusLinks& links, ChipIndex from, const std::vector<LinkId>& route) {
  ChipIndex at = from;
  for (const LinkId link : route) {
    const torus::Hop hop = links.HopOf(link);
    EXPECT_EQ(hop.from, at);
    at = hop.to;
  }
  return at;
}

TEST(TorusLinksTest, AnUltraServerHas192CablesOf128And64GigabytesPerSecond) {
  const TorusLinks links = UltraServer();
  int fast = 0, slow = 0;
  for (LinkId link = 0; link < links.id_count(); ++link) {
    (links.capacity(link) == 128'000'000'000 ? fast : slow) += 1;
    EXPECT_EQ(links.HopOf(link).axis == Axis::kZ, links.capacity(link) == 64'000'000'000);
  }
  EXPECT_EQ(fast, 2 * 128);
  EXPECT_EQ(slow, 2 * 64);
}

TEST(TorusLinksTest, AnInstanceHas32CablesAndNoZ) {
  const TorusLinks links = Instance();
  int directed = 0;
  for (LinkId link = 0; link < links.id_count(); ++link) directed += links.Exists(link) ? 1 : 0;
  EXPECT_EQ(directed, 64);
  EXPECT_FALSE(links.Exists(TorusLinks::IdOf(ChipIndex(3), Axis::kZ, Direction::kPlus)));
}

TEST(TorusLinksTest, ATrn2With1ChipHasNoLinkAtAll) {
  const TorusLinks links(torus::Shape::Of<1, 1, 1>(), hw::kTrainium2.links);
  for (LinkId link = 0; link < links.id_count(); ++link) EXPECT_FALSE(links.Exists(link));
  EXPECT_TRUE(links.IsConnected(1));
}

TEST(TorusLinksTest, EfficiencyScalesEveryRate) {
  const TorusLinks links(torus::kInstanceShape, hw::kTrainium2.links, {.efficiency_permille = 900});
  EXPECT_EQ(links.capacity(1), 115'200'000'000u);
}

TEST(TorusLinksTest, EveryHealthyRouteIsMinimalAndUnbroken) {
  const TorusLinks links = UltraServer();
  const torus::Shape& torus = links.torus();
  for (int from = 0; from < 64; ++from) {
    for (int to = 0; to < 64; ++to) {
      const auto route = links.FindRoute(ChipIndex(from), ChipIndex(to), kAllChips);
      ASSERT_TRUE(route.ok());
      EXPECT_EQ(static_cast<int>(route->size()),
                torus.HopDistance(torus.CoordOf(ChipIndex(from)), torus.CoordOf(ChipIndex(to))));
      EXPECT_EQ(EndOf(links, ChipIndex(from), *route), ChipIndex(to));
    }
  }
}

TEST(TorusLinksTest, ARouteAvoidsABrokenLinkAndReturnsToItAfterTheRepair) {
  TorusLinks links = Instance();
  const LinkId broken = TorusLinks::IdOf(ChipIndex(0), Axis::kX, Direction::kPlus);
  ASSERT_TRUE(links.SetPermille(broken, 0).ok());
  const auto around = links.FindRoute(ChipIndex(0), ChipIndex(1), kAllChips);
  ASSERT_TRUE(around.ok());
  EXPECT_EQ(around->size(), 3u);
  EXPECT_EQ(EndOf(links, ChipIndex(0), *around), ChipIndex(1));
  // The other direction of the cable still works.
  EXPECT_EQ(links.FindRoute(ChipIndex(1), ChipIndex(0), kAllChips)->size(), 1u);
  ASSERT_TRUE(links.SetPermille(broken, 1000).ok());
  EXPECT_EQ(links.FindRoute(ChipIndex(0), ChipIndex(1), kAllChips)->size(), 1u);
}

TEST(TorusLinksTest, ADetourStaysInsideTheChipsItMayUse) {
  TorusLinks links = Instance();
  ASSERT_TRUE(
      links.SetCablePermille(TorusLinks::IdOf(ChipIndex(0), Axis::kX, Direction::kPlus), 0).ok());
  const torus::ChipMask square = 0b0011'0011;  // chips 0, 1, 4, 5
  const auto around = links.FindRoute(ChipIndex(0), ChipIndex(1), square);
  ASSERT_TRUE(around.ok());
  for (const LinkId link : *around) EXPECT_NE(square & MaskOf(links.HopOf(link).to), 0u);
  // A pair alone has no second route.
  const auto none = links.FindRoute(ChipIndex(0), ChipIndex(1), 0b11);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(none.status()), "no NeuronLink route from chip 0 to chip 1: links are down");
}

TEST(TorusLinksTest, EveryPairStaysReachableWhileOneCableIsDown) {
  TorusLinks links = UltraServer();
  for (LinkId broken = 0; broken < links.id_count(); ++broken) {
    ASSERT_TRUE(links.SetCablePermille(broken, 0).ok());
    const torus::Hop hop = links.HopOf(broken);
    for (const auto& [from, to] : {std::pair(hop.from, hop.to), std::pair(hop.to, hop.from)}) {
      const auto route = links.FindRoute(from, to, kAllChips);
      ASSERT_TRUE(route.ok());
      EXPECT_EQ(route->size(), 3u) << TorusLinks::Name(broken);
      EXPECT_EQ(std::set<LinkId>(route->begin(), route->end()).size(), 3u);
      EXPECT_EQ(EndOf(links, from, *route), to);
    }
    ASSERT_TRUE(links.SetCablePermille(broken, 1000).ok());
  }
}

TEST(TorusLinksTest, AStateOutsideItsRangeChangesNothing) {
  TorusLinks links = Instance();
  EXPECT_EQ(Message(links.SetPermille(1, 1001)),
            "a link's rate is 1001 thousandths; expected 0 to 1000");
  EXPECT_EQ(Message(links.SetPermille(5, 0)), "link 5 does not exist in a torus of 4x4x1");
  EXPECT_EQ(Message(links.SetPermille(4096, 0)), "link 4096 does not exist in a torus of 4x4x1");
  EXPECT_FALSE(links.damaged());
}

TEST(TorusLinksTest, UnhealthyLinksAreListedByTheirSendersInOrder) {
  TorusLinks links = Instance();
  ASSERT_TRUE(
      links.SetPermille(TorusLinks::IdOf(ChipIndex(9), Axis::kY, Direction::kMinus), 0).ok());
  ASSERT_TRUE(
      links.SetPermille(TorusLinks::IdOf(ChipIndex(2), Axis::kX, Direction::kPlus), 500).ok());
  EXPECT_EQ(links.Unhealthy(kAllChips), (std::vector<LinkState>{{13, 500}, {56, 0}}));
  EXPECT_EQ(links.Unhealthy(torus::MaskOf(ChipIndex(9))), (std::vector<LinkState>{{56, 0}}));
  EXPECT_EQ(TorusLinks::Name(56), "chip 9 y-");
  EXPECT_TRUE(links.damaged());
}

TEST(TorusLinksTest, ABrokenLinkDamagesOnlyTheChipSetsThatHoldBothItsEnds) {
  TorusLinks links = UltraServer();
  ASSERT_TRUE(
      links.SetPermille(TorusLinks::IdOf(ChipIndex(5), Axis::kX, Direction::kPlus), 999).ok());
  EXPECT_TRUE(links.IsDamaged(0b110'0000));
  EXPECT_FALSE(links.IsDamaged(0b011'0000));  // the link of chip 5 leads to chip 6
  EXPECT_FALSE(links.IsDamaged(0b100'0000));
}

TEST(TorusLinksTest, ALossyLinkSendsSomePacketsAgainAndAsksForThemFirst) {
  TorusLinks links = Instance();
  const LinkId link = TorusLinks::IdOf(ChipIndex(5), Axis::kX, Direction::kPlus);
  EXPECT_EQ(links.latency(link), Microseconds(0.5));
  ASSERT_TRUE(
      links.SetLoss(link, 200'000).ok());  // every fifth: 1.25 times each, 0.25 of them late
  EXPECT_EQ(links.capacity(link), 102'400'000'000U);
  EXPECT_EQ(links.latency(link), Microseconds(0.5 + 0.25 * 2 * 0.5));
  ASSERT_TRUE(links.SetPermille(link, 500).ok());
  EXPECT_EQ(links.capacity(link), 51'200'000'000U);
  EXPECT_EQ(links.Unhealthy(kAllChips), (std::vector<LinkState>{{link, 500, 200'000}}));
  ASSERT_TRUE(links.SetPermille(link, 1000).ok());
  EXPECT_TRUE(links.damaged()) << "it still loses packets";
  ASSERT_TRUE(links.SetLoss(link, 0).ok());
  EXPECT_FALSE(links.damaged());
  const std::vector<LinkId> route = {link, link};
  EXPECT_EQ(links.LatencyOf(route), Microseconds(1));
}

// The model's expected values against packets that are thrown one by one.
TEST(TorusLinksTest, LossCostsWhatPacketsSentUntilTheyArriveCost) {
  constexpr std::uint64_t kPackets = 200'000;
  for (const std::uint32_t loss : {1'000U, 50'000U, 300'000U, kMaxLossPpm}) {
    Rng rng(loss);
    std::uint64_t sent = 0;
    for (std::uint64_t packet = 0; packet < kPackets; ++packet) {
      do ++sent;
      while (rng.Chance(loss, 1'000'000));
    }
    TorusLinks links = Instance();
    ASSERT_TRUE(links.SetLoss(1, loss).ok());
    const double of_rate = static_cast<double>(links.capacity(1)) / 128e9;
    const double again = static_cast<double>(sent - kPackets) / kPackets;
    EXPECT_NEAR(of_rate, static_cast<double>(kPackets) / static_cast<double>(sent), 0.01) << loss;
    EXPECT_NEAR(Nanoseconds(links.latency(1)) / 500, 1 + 2 * again, 0.02) << loss;
  }
}

TEST(TorusLinksTest, ALossOrAFlappingOutsideItsRangeIsRefused) {
  TorusLinks links = Instance();
  EXPECT_EQ(links.SetLoss(1, kMaxLossPpm + 1).message(),
            "a link loses 500001 of a million packets; expected 0 to 500000");
  EXPECT_EQ(links.SetLoss(TorusLinks::IdOf(ChipIndex(3), Axis::kZ, Direction::kPlus), 1).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(links.damaged());
  const auto check = [](double period, double down) {
    return CheckFlapping({.period = Microseconds(period), .down = Microseconds(down)}).ok();
  };
  EXPECT_TRUE(check(0, 0));
  EXPECT_TRUE(check(10, 1));
  EXPECT_FALSE(check(9.9, 1));
  EXPECT_FALSE(check(10, 10));
  EXPECT_FALSE(check(10, 0));
  EXPECT_FALSE(check(0, 1));
  EXPECT_FALSE(check(3'600e6 + 1, 1));
}

TEST(TorusLinksTest, ConnectednessIsAboutTheSetNotTheTorus) {
  const TorusLinks links = Instance();
  EXPECT_TRUE(links.IsConnected(0b1001));        // chips 0 and 3: the row wraps around
  EXPECT_FALSE(links.IsConnected(0b0101));       // 0 and 2
  EXPECT_FALSE(links.IsConnected(0b0010'0001));  // a diagonal
  EXPECT_TRUE(links.IsConnected(0xffff));
}

TEST(TorusLinksTest, ARingOfTwelveIsATorusOfOneAxis) {
  const hw::InstanceType& type = *hw::FindInstanceType("inf2.48xlarge");
  TorusLinks links(type.torus, type.chip->links);
  int directed = 0;
  for (LinkId link = 0; link < links.id_count(); ++link) directed += links.Exists(link) ? 1 : 0;
  EXPECT_EQ(directed, 24) << "twelve cables";
  const torus::ChipIndex first(0);
  for (int to = 1; to < 12; ++to) {
    const auto route = links.FindRoute(first, torus::ChipIndex(to), kAllChips);
    ASSERT_TRUE(route.ok());
    EXPECT_EQ(static_cast<int>(route->size()), std::min(to, 12 - to));
  }
  EXPECT_TRUE(links.IsConnected(0b100000000011)) << "11, 0 and 1";
  EXPECT_FALSE(links.IsConnected(0b101));
  ASSERT_TRUE(
      links.SetCablePermille(TorusLinks::IdOf(first, torus::Axis::kX, torus::Direction::kPlus), 0)
          .ok());
  EXPECT_EQ(links.FindRoute(first, torus::ChipIndex(1), kAllChips)->size(), 11U) << "round it";
}

}  // namespace
}  // namespace tahoma::sim

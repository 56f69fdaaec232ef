// Numbers, names and states of links in a fabric; routes through the network's layers; and how
// messages between topology domains share them, compared with arithmetic by hand and with isolated
// runs.

#include "sim-node/emulator/link/fabric.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "sim-node/emulator/link/transfer.h"

namespace tahoma::sim {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::Direction;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::int64_t kEfaRate = hw::kTrainium2.links.efa;

TorusLinks UltraServer() { return {torus::kUltraServerShape, hw::kTrainium2.links}; }
TorusLinks Instance() { return {torus::kInstanceShape, hw::kTrainium2.links}; }

// An instance, an UltraServer and an instance.
Fabric Mixed() { return {{Instance(), UltraServer(), Instance()}, kEfaRate}; }

// Two domains under each node of layer 3, two of these under each of layer 2, two under each of
// layer 1: domains 0 and 1 are nearest, 0 and 2 share layer 2, 0 and 4 layer 1, 0 and 8 nothing.
constexpr LayerSizes kTwos = {
    .domains_under_layer3 = 2, .layer3_under_layer2 = 2, .layer2_under_layer1 = 2};
Fabric Sixteen(const EfaTiming& efa = {}) {
  return {std::vector<TorusLinks>(16, Instance()), kEfaRate, efa, RegularPlaces(16, kTwos)};
}

// When each flow arrives.
std::vector<VirtualTime> Arrivals(Fabric fabric, const std::vector<Flow>& flows,
                                  absl::Status* status = nullptr) {
  EventQueue queue;
  Transfer transfer(queue, fabric);
  std::vector<VirtualTime> found;
  transfer.Start(flows, [&](const absl::Status& ended, const std::vector<VirtualTime>& arrivals) {
    if (status != nullptr) *status = ended;
    found = arrivals;
  });
  queue.RunUntilIdle();
  return found;
}

Flow Between(int domain, int chip, int other, int other_chip, std::uint64_t bytes = kMiB) {
  return {.from = Fabric::ChipOf(domain, chip),
          .to = Fabric::ChipOf(other, other_chip),
          .bytes = bytes};
}

VirtualTime AfterEfa(std::uint64_t bytes, std::uint64_t rate = 25'000'000'000) {
  // A step's microsecond is part of the 15.
  return VirtualTime(Microseconds(14) + TransferTime(bytes, rate));
}

TEST(FabricTest, OneTorusKeepsItsChipsAndLinks) {
  const Fabric fabric(UltraServer());
  EXPECT_EQ(fabric.domain_count(), 1);
  EXPECT_EQ(fabric.id_count(), UltraServer().id_count());
  const LinkId link = TorusLinks::IdOf(ChipIndex(37), Axis::kZ, Direction::kMinus);
  EXPECT_EQ(fabric.LinkOf(ChipIndex(37), Axis::kZ, Direction::kMinus), link);
  EXPECT_EQ(fabric.Name(link), "chip 37 z-");
  EXPECT_EQ(fabric.capacity(link), 64'000'000'000u);
}

TEST(FabricTest, ChipsAreNumberedInSixtyFoursWhateverTheSizeOfTheDomain) {
  const Fabric fabric = Mixed();
  EXPECT_EQ(Fabric::ChipOf(2, 5), ChipIndex(133));
  EXPECT_EQ(Fabric::DomainOf(ChipIndex(133)), 2);
  EXPECT_EQ(Fabric::LocalOf(ChipIndex(133)), ChipIndex(5));
  EXPECT_TRUE(fabric.Contains(Fabric::ChipOf(1, 63)));
  EXPECT_FALSE(fabric.Contains(Fabric::ChipOf(0, 16)));  // an instance has 16
  EXPECT_FALSE(fabric.Contains(Fabric::ChipOf(3, 0)));
}

TEST(FabricTest, MoreChipsThanOneUltraClusterHaveNumbers) {
  const int domains = 40 * 32;  // 40 UltraClusters of 2,048 chips
  const Fabric fabric(std::vector<TorusLinks>(domains, UltraServer()), kEfaRate);
  const ChipIndex last = Fabric::ChipOf(domains - 1, 63);
  EXPECT_EQ(last.value(), 81'919);
  EXPECT_TRUE(fabric.Contains(last));
  EXPECT_EQ(fabric.Name(fabric.NicOf(last, NicDirection::kIn)), "domain 1279 chip 63 EFA in");
}

TEST(FabricTest, LinksAreNumberedThroughTheDomainsThenNicsThenUplinksEachOnce) {
  const Fabric fabric = Mixed();
  EXPECT_EQ(fabric.LinkOf(Fabric::ChipOf(1, 0), Axis::kX, Direction::kMinus), 96u);
  EXPECT_EQ(fabric.LinkOf(Fabric::ChipOf(2, 0), Axis::kX, Direction::kMinus), 96u + 384u);
  EXPECT_EQ(fabric.NicOf(Fabric::ChipOf(0, 0), NicDirection::kOut), 96u + 384u + 96u);
  std::set<std::string> names;
  std::set<LinkId> ids;
  for (int domain = 0; domain < 3; ++domain) {
    for (int chip = 0; chip < fabric.domain(domain).torus().chip_count(); ++chip) {
      for (const NicDirection direction : {NicDirection::kOut, NicDirection::kIn}) {
        ids.insert(fabric.NicOf(Fabric::ChipOf(domain, chip), direction));
      }
    }
  }
  for (const int layer : {1, 2, 3}) {
    for (const NicDirection direction : {NicDirection::kOut, NicDirection::kIn}) {
      ids.insert(fabric.UplinkOf(0, layer, direction));
    }
  }
  EXPECT_EQ(ids.size(), 2u * 96 + 6);
  EXPECT_EQ(*ids.rbegin(), fabric.id_count() - 1);
  for (LinkId link = 0; link < fabric.id_count(); ++link) names.insert(fabric.Name(link));
  EXPECT_EQ(names.size(), fabric.id_count());
  EXPECT_TRUE(names.contains("domain 1 chip 63 z+"));
  EXPECT_TRUE(names.contains("domain 2 chip 15 EFA out"));
  EXPECT_TRUE(names.contains("layer 3 node 0 down"));
}

TEST(FabricTest, AStateBelongsToOneLinkOfOneDomain) {
  Fabric fabric(std::vector<TorusLinks>(3, UltraServer()), kEfaRate);
  const Fabric before = fabric;
  const LinkId link = fabric.LinkOf(Fabric::ChipOf(1, 9), Axis::kY, Direction::kPlus);
  ASSERT_TRUE(fabric.SetPermille(link, 250).ok());
  EXPECT_EQ(fabric.permille(link), 250);
  EXPECT_EQ(fabric.capacity(link), 32'000'000'000u);
  for (LinkId other = 0; other < fabric.id_count(); ++other) {
    if (other == link) continue;
    EXPECT_EQ(fabric.capacity(other), before.capacity(other)) << other;
  }
  EXPECT_EQ(before.permille(link), 1000);  // a copy is not touched
  EXPECT_FALSE(fabric.Alike(0, 1));
  EXPECT_TRUE(fabric.Alike(0, 2));
  ASSERT_TRUE(fabric.SetPermille(link, 1000).ok());
  EXPECT_TRUE(fabric.Alike(0, 1));
}

TEST(FabricTest, DomainsOfUnlikeShapesAreNotAlike) {
  EXPECT_FALSE(Mixed().Alike(0, 1));
  EXPECT_TRUE(Mixed().Alike(0, 2));
}

TEST(FabricTest, ABadLinkOrRateIsRefusedInWords) {
  Fabric fabric = Mixed();
  EXPECT_EQ(Message(fabric.SetPermille(fabric.id_count(), 0)),
            "link 774 does not exist in a fabric of 774 links");
  EXPECT_EQ(Message(fabric.SetPermille(fabric.NicOf(ChipIndex(0), NicDirection::kOut), 1001)),
            "a link's rate is 1001 thousandths; expected 0 to 1000");
  Fabric one(Instance());
  EXPECT_EQ(Message(one.SetPermille(96, 0)), "link 96 does not exist in a torus of 4x4x1");
}

TEST(NetworkPlaceTest, RegularPlacesFillOneNodeAfterTheOther) {
  const auto places = RegularPlaces(9, kTwos);
  EXPECT_EQ(places[0], (NetworkPlace{.node = {0, 0, 0}}));
  EXPECT_EQ(places[1], (NetworkPlace{.node = {0, 0, 0}}));
  EXPECT_EQ(places[2], (NetworkPlace{.node = {0, 0, 1}}));
  EXPECT_EQ(places[4], (NetworkPlace{.node = {0, 1, 2}}));
  EXPECT_EQ(places[8], (NetworkPlace{.node = {1, 2, 4}}));
  EXPECT_TRUE(CheckPlaces(places).ok());
}

TEST(NetworkPlaceTest, ANodeWithTwoParentsIsNamed) {
  const std::vector<NetworkPlace> places = {{.node = {0, 4, 7}}, {.node = {0, 5, 7}}};
  EXPECT_EQ(Message(CheckPlaces(places)),
            "node 7 of network layer 3 is under nodes 4 and 5 of layer 2");
}

TEST(EfaTest, AMessageOfOneByteTakesFifteenMicrosecondsWithTheStep) {
  const auto arrivals = Arrivals(Mixed(), {Between(0, 0, 1, 0, 1)});
  EXPECT_EQ(arrivals[0] + LinkTiming{}.step, VirtualTime(Microseconds(15) + VirtualDuration(40)));
}

TEST(EfaTest, BytesTakeTheNicsRateWhateverTheDistance) {
  const auto arrivals = Arrivals(Sixteen(), {Between(0, 3, 1, 3), Between(2, 3, 5, 3),
                                             Between(4, 3, 15, 3), Between(6, 3, 7, 2)});
  for (const VirtualTime arrival : arrivals) EXPECT_EQ(arrival, AfterEfa(kMiB));
}

TEST(EfaTest, EachLayerClimbedAddsItsLatency) {
  const Fabric fabric = Sixteen({.layer = Microseconds(2)});
  const auto arrivals = Arrivals(
      fabric, {Between(0, 0, 1, 0), Between(0, 1, 2, 1), Between(0, 2, 4, 2), Between(0, 3, 8, 3)});
  for (std::size_t layers = 0; layers < 4; ++layers) {
    EXPECT_EQ(arrivals[layers], AfterEfa(kMiB) + Microseconds(2.0 * static_cast<double>(layers)));
  }
}

TEST(EfaTest, MessagesOutOfAndIntoOneNicShareIt) {
  const auto arrivals =
      Arrivals(Mixed(), {Between(0, 0, 1, 0), Between(0, 0, 2, 0), Between(1, 9, 2, 5)});
  EXPECT_EQ(arrivals[0], AfterEfa(2 * kMiB));
  EXPECT_EQ(arrivals[1], AfterEfa(2 * kMiB));
  EXPECT_EQ(arrivals[2], AfterEfa(kMiB));
  const auto incast = Arrivals(Sixteen(), {Between(0, 0, 9, 0), Between(1, 0, 9, 0),
                                           Between(2, 0, 9, 0), Between(3, 0, 9, 1)});
  // Shares are whole bytes per second, so a third may take a picosecond more.
  EXPECT_NEAR(Nanoseconds(incast[0] - AfterEfa(3 * kMiB)), 0, 0.01);
  EXPECT_EQ(incast[3], AfterEfa(kMiB));
}

// Chips 0 of three domains send to each other, chips 5 half as much to those of the next domain,
// and chips 7 begin when these have ended. All are listed, or one for those that are alike.
TEST(EfaTest, AFlowForAGroupTakesTheGroupsTimeWhileOtherFlowsEndAndBegin) {
  std::vector<Flow> listed;
  std::vector<Flow> listed_later;
  for (int domain = 0; domain < 3; ++domain) {
    for (const int hops : {1, 2}) listed.push_back(Between(domain, 0, (domain + hops) % 3, 0));
    listed.push_back(Between(domain, 5, (domain + 1) % 3, 5, kMiB / 2));
    listed_later.push_back(Between(domain, 7, (domain + 1) % 3, 7));
  }
  std::vector<Flow> one = {Between(0, 0, 2, 0), Between(0, 5, 1, 5, kMiB / 2)};
  const AlikeFlows two{.at_sender = 2, .at_receiver = 2, .uplinks = {}};
  one[0].alike = &two;
  const std::vector<Flow> one_later = {Between(0, 7, 1, 7)};
  const VirtualDuration half = TransferTime(kMiB / 2, kEfaRate);
  for (const auto& [flows, later] : {std::pair(listed, listed_later), std::pair(one, one_later)}) {
    Fabric fabric = Sixteen();
    EventQueue queue;
    Transfer transfer(queue, fabric);
    std::vector<VirtualTime> arrivals;
    std::vector<VirtualTime> arrivals_later;
    transfer.Start(flows, [&](const auto&, const auto& found) { arrivals = found; });
    queue.Schedule(VirtualTime(half), EventPriority::kStart, [&] {
      transfer.Start(later, [&](const auto&, const auto& found) { arrivals_later = found; });
    });
    queue.RunUntilIdle();
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const bool few = flows[i].bytes < kMiB;
      EXPECT_EQ(arrivals[i], AfterEfa(few ? kMiB / 2 : 2 * kMiB));
    }
    for (const VirtualTime arrival : arrivals_later) EXPECT_EQ(arrival, AfterEfa(kMiB) + half);
  }
}

TEST(EfaTest, BothDirectionsOfANicAreApart) {
  const auto arrivals = Arrivals(Mixed(), {Between(0, 0, 1, 0), Between(1, 0, 0, 0)});
  EXPECT_EQ(arrivals[0], AfterEfa(kMiB));
  EXPECT_EQ(arrivals[1], AfterEfa(kMiB));
}

TEST(EfaTest, NeuronLinkAndEfaDoNotSlowEachOther) {
  std::vector<Flow> flows;
  for (int chip = 0; chip < 16; ++chip) {
    flows.push_back(Between(0, chip, 0, (chip + 5) % 16));
    flows.push_back(Between(0, chip, 2, (chip + 3) % 16));
  }
  const auto together = Arrivals(Mixed(), flows);
  for (const std::size_t parity : {0u, 1u}) {
    std::vector<Flow> alone;
    for (std::size_t i = parity; i < flows.size(); i += 2) alone.push_back(flows[i]);
    const auto solo = Arrivals(Mixed(), alone);
    for (std::size_t i = 0; i < solo.size(); ++i) EXPECT_EQ(together[2 * i + parity], solo[i]);
  }
}

TEST(EfaTest, TenantsInDifferentDomainsKeepTheirSoloTimesToThePicosecond) {
  Rng rng(11);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<Flow>> tenants(2);  // in domains 0 to 7 and 8 to 15
    std::vector<Flow> all;
    for (int i = 0; i < 60; ++i) {
      const auto pick = [&](std::uint64_t below) { return static_cast<int>(rng.Below(below)); };
      const int tenant = pick(2);
      const Flow flow = Between(8 * tenant + pick(8), pick(16), 8 * tenant + pick(8), pick(16),
                                1 + rng.Below(kMiB));
      tenants[static_cast<std::size_t>(tenant)].push_back(flow);
      all.push_back(flow);
    }
    const auto together = Arrivals(Sixteen(), all);
    std::vector<std::vector<VirtualTime>> solo;
    for (const auto& tenant : tenants) solo.push_back(Arrivals(Sixteen(), tenant));
    std::size_t next[2] = {0, 0};
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto tenant = static_cast<std::size_t>(Fabric::DomainOf(all[i].from) / 8);
      EXPECT_EQ(together[i], solo[tenant][next[tenant]++]);
    }
  }
}

// 16 chips of domains 0 and 1 send to those of `to` and the domain after it.
std::vector<Flow> Wave(int to) {
  std::vector<Flow> flows;
  for (const int domain : {0, 1}) {
    for (int chip = 0; chip < 16; ++chip) flows.push_back(Between(domain, chip, to + domain, chip));
  }
  return flows;
}

TEST(EfaTest, AnOversubscribedLayerSlowsOnlyFlowsThroughTheLayer) {
  // Layer 2's uplinks carry a third of what the NICs below them do.
  const Fabric fabric = Sixteen({.oversubscription_permille = {1000, 3000, 1000}});
  const Fabric free = Sixteen();
  EXPECT_EQ(Arrivals(fabric, Wave(2)), Arrivals(free, Wave(2)));  // below one node of layer 2
  const auto crossing = Arrivals(fabric, Wave(4));
  // 32 of the 64 NICs below the node send: each gets 2/3 of its rate.
  for (const VirtualTime arrival : crossing) {
    EXPECT_NEAR(Nanoseconds(arrival - AfterEfa(kMiB * 3 / 2)), 0, 1);
  }
  // Both at once: who stays below keeps its time.
  std::vector<Flow> both = Wave(4);
  for (int chip = 0; chip < 16; ++chip) both.push_back(Between(2, chip, 3, chip));
  const auto arrivals = Arrivals(fabric, both);
  for (std::size_t i = 32; i < both.size(); ++i) EXPECT_EQ(arrivals[i], AfterEfa(kMiB));
}

TEST(EfaTest, ADegradedUplinkLimitsAlthoughTheLayerIsNotOversubscribed) {
  Fabric fabric = Sixteen();
  ASSERT_TRUE(fabric.SetPermille(fabric.UplinkOf(0, 3, NicDirection::kOut), 250).ok());
  const auto arrivals = Arrivals(fabric, Wave(4));  // all 32 NICs below the node send
  for (const VirtualTime arrival : arrivals) EXPECT_EQ(arrival, AfterEfa(4 * kMiB));
  EXPECT_EQ(Arrivals(fabric, {Between(4, 0, 0, 0)})[0], AfterEfa(kMiB));  // the other direction
}

TEST(EfaTest, ANicThatIsDownIsNamed) {
  Fabric fabric = Mixed();
  ASSERT_TRUE(fabric.SetPermille(fabric.NicOf(Fabric::ChipOf(1, 5), NicDirection::kIn), 0).ok());
  absl::Status status;
  Arrivals(fabric, {Between(0, 3, 1, 5)}, &status);
  EXPECT_EQ(Message(status),
            "no EFA route from domain 0 chip 3 to domain 1 chip 5: domain 1 chip 5 EFA in is down");
  Arrivals(fabric, {Between(1, 5, 0, 3)}, &status);  // it still sends
  EXPECT_TRUE(status.ok());
}

TEST(EfaTest, ADomainCutOffInsideIsNamedWithItsChips) {
  Fabric fabric = Mixed();
  for (const Axis axis : {Axis::kX, Axis::kY}) {
    for (const Direction direction : torus::kDirections) {
      ASSERT_TRUE(fabric.SetPermille(fabric.LinkOf(Fabric::ChipOf(2, 3), axis, direction), 0).ok());
    }
  }
  absl::Status status;
  Arrivals(fabric, {Between(2, 3, 2, 4)}, &status);
  EXPECT_EQ(Message(status), "domain 2: no NeuronLink route from chip 3 to chip 4: links are down");
}

TEST(EfaTest, ANicThatDegradesHalfwaySlowsTheSecondHalf) {
  Fabric fabric = Mixed();
  EventQueue queue;
  Transfer transfer(queue, fabric);
  const VirtualDuration half = TransferTime(kMiB, 25'000'000'000);
  VirtualTime end{};
  queue.Schedule(VirtualTime(half), EventPriority::kFault, [&] {
    ASSERT_TRUE(
        transfer.SetPermille(fabric.NicOf(Fabric::ChipOf(0, 0), NicDirection::kOut), 500).ok());
  });
  transfer.Start({Between(0, 0, 1, 0, 2 * kMiB)}, [&](const absl::Status& status, const auto&) {
    EXPECT_TRUE(status.ok());
    end = queue.now();
  });
  queue.RunUntilIdle();
  EXPECT_EQ(end, VirtualTime(3 * half + Microseconds(14)));
}

TEST(EfaTest, AnUplinkThatDegradesHalfwaySlowsRunningMessages) {
  Fabric fabric = Sixteen();
  EventQueue queue;
  Transfer transfer(queue, fabric);
  const VirtualDuration half = TransferTime(kMiB, 25'000'000'000);
  VirtualTime end{};
  queue.Schedule(VirtualTime(half), EventPriority::kFault, [&] {
    ASSERT_TRUE(transfer.SetPermille(fabric.UplinkOf(0, 3, NicDirection::kOut), 10).ok());
  });
  transfer.Start({Between(0, 0, 8, 0, 2 * kMiB)},
                 [&](const absl::Status&, const auto&) { end = queue.now(); });
  queue.RunUntilIdle();
  // A hundredth of 32 NICs is 8 GB/s.
  EXPECT_EQ(end, VirtualTime(half + TransferTime(kMiB, 8'000'000'000) + Microseconds(14)));
}

TEST(EfaTest, ABatchThatLosesItsRouteInADomainEndsInEveryDomainAndLeavesOtherBatches) {
  Fabric fabric = Mixed();
  EventQueue queue;
  Transfer transfer(queue, fabric);
  absl::Status lost, kept = absl::UnknownError("");
  VirtualTime lost_at{}, kept_at{};
  queue.Schedule(VirtualTime(Microseconds(5)), EventPriority::kFault, [&] {
    ASSERT_TRUE(
        transfer.SetPermille(fabric.NicOf(Fabric::ChipOf(0, 0), NicDirection::kOut), 0).ok());
  });
  transfer.Start({Between(0, 0, 1, 0), Between(2, 0, 2, 1, 100 * kMiB)},
                 [&](const absl::Status& status, const auto&) {
                   lost = status;
                   lost_at = queue.now();
                 });
  transfer.Start({Between(2, 0, 2, 1, kMiB)}, [&](const absl::Status& status, const auto&) {
    kept = status;
    kept_at = queue.now();
  });
  queue.RunUntilIdle();
  EXPECT_FALSE(lost.ok());
  EXPECT_EQ(lost_at, VirtualTime(Microseconds(5)));
  EXPECT_TRUE(kept.ok());
  // Shared for 5 us, then alone.
  const VirtualDuration alone = TransferTime(kMiB, 128'000'000'000);
  EXPECT_EQ(kept_at, VirtualTime(alone + Microseconds(2.5) + Microseconds(0.5)));
}

TEST(EfaTest, NoLinkEverCarriesMoreThanItsRateAllowsAndEverythingArrives) {
  Rng rng(5);
  const Fabric fabric = Sixteen({.oversubscription_permille = {4000, 2000, 1500}});
  for (int round = 0; round < 10; ++round) {
    std::vector<Flow> flows;
    for (int i = 0; i < 300; ++i) {
      const auto pick = [&](std::uint64_t below) { return static_cast<int>(rng.Below(below)); };
      const int from = pick(16);
      const int to = (from + 1 + pick(15)) % 16;
      flows.push_back(Between(from, pick(16), to, pick(16), 1 + rng.Below(kMiB)));
    }
    const auto arrivals = Arrivals(fabric, flows);
    std::vector<std::uint64_t> bytes(fabric.efa().id_count());
    std::vector<VirtualTime> last(fabric.efa().id_count());
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const DomainChip from = Fabric::Split(flows[i].from);
      const DomainChip to = Fabric::Split(flows[i].to);
      const auto route = fabric.efa().FindRoute(from, to);
      for (const LinkId link : *route) {
        bytes[link] += flows[i].bytes;
        last[link] = std::max(last[link], arrivals[i]);
      }
      EXPECT_GE(arrivals[i], AfterEfa(flows[i].bytes));
    }
    for (LinkId link = 0; link < fabric.efa().id_count(); ++link) {
      if (bytes[link] == 0) continue;
      EXPECT_GE(last[link], AfterEfa(bytes[link], fabric.efa().capacity(link)))
          << fabric.efa().Name(link);
    }
  }
}

TEST(EfaTest, TheSameFlowsTakeTheSameTimesAgain) {
  const Fabric fabric = Sixteen({.oversubscription_permille = {4000, 2000, 1500}});
  EXPECT_EQ(Arrivals(fabric, Wave(8)), Arrivals(fabric, Wave(8)));
}

TEST(FabricDeathTest, DomainsMustAgreeInTiming) {
  const TorusLinks slow(torus::kInstanceShape, hw::kTrainium2.links, {.step = Microseconds(9)});
  EXPECT_DEATH(Fabric({Instance(), slow}, kEfaRate), "CHECK failed");
}

}  // namespace
}  // namespace tahoma::sim

#include "sim-node/emulator/collective/plan/link_loads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::UltraServer;
using torus::ChipIndex;
using torus::ChipMask;

constexpr Operation kAll[] = {Operation::kAllReduce,     Operation::kAllGather,
                              Operation::kReduceScatter, Operation::kAllToAll,
                              Operation::kBroadcast,     Operation::kSendReceive};

TEST(LinkLoadsTest, ARingOfTwoStepsOnTwoChipsLoadsOneLinkInEachDirection) {
  const TorusLinks links = Instance();
  const auto plan = PlanWith(Algorithm::kRdh, {.bytes = kMiB}, MembersOf(0b11), links);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto loads = LoadsOf(*plan, Fabric(links));
  ASSERT_TRUE(loads.ok());
  ASSERT_EQ(loads->size(), 2U);
  for (const LinkLoad& load : *loads) {
    EXPECT_EQ(load.bytes, kMiB);  // half of the buffer in each of the two phases
    EXPECT_EQ(load.busy, 2 * TransferTime(kMiB / 2, 128'000'000'000));
  }
}

// No link carries more than its rate times the time, and chips receive what is sent to them.
TEST(LinkLoadsTest, NoLinkCarriesMoreThanItCanAndEveryByteSentIsReceived) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    TorusLinks links = seed % 4 == 0 ? UltraServer({}) : Instance({});
    for (std::uint64_t i = rng.Below(5); i > 0; --i) {
      const auto link = static_cast<LinkId>(rng.Below(links.id_count()));
      if (!links.Exists(link)) continue;
      ASSERT_TRUE(links.SetPermille(link, static_cast<std::uint16_t>(100 + rng.Below(901))).ok());
      ASSERT_TRUE(links.SetLoss(link, static_cast<std::uint32_t>(rng.Below(100'000))).ok());
    }
    const ChipMask chips = seed % 4 == 0 ? kAllChips : 0xffff;
    ChipMask mask = seed % 3 == 0 ? chips : rng.Next() & chips;
    if (mask == 0) mask = chips;
    const Request request{.operation = kAll[rng.Below(std::size(kAll))],
                          .bytes = 64 * (1 + rng.Below(kMiB))};
    const auto plan = PlanCollective(request, MembersOf(mask), links);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto loads = LoadsOf(*plan, Fabric(links));
    ASSERT_TRUE(loads.ok()) << loads.status();
    const VirtualDuration time = plan->times.end - plan->times.start;
    std::vector<std::int64_t> balance(64);  // what came in less what went out
    for (const LinkLoad& load : *loads) {
      EXPECT_LE(load.busy, time);
      // A picosecond for each step's rounding.
      const VirtualDuration needed = TransferTime(load.bytes, links.capacity(load.link));
      EXPECT_LE(needed, load.busy + VirtualDuration(plan->schedule.steps.size()))
          << "seed " << seed << " " << TorusLinks::Name(load.link);
      const torus::Hop hop = links.HopOf(load.link);
      balance[static_cast<std::size_t>(hop.from.value())] -= static_cast<std::int64_t>(load.bytes);
      balance[static_cast<std::size_t>(hop.to.value())] += static_cast<std::int64_t>(load.bytes);
    }
    for (const Step& step : plan->schedule.steps) {
      for (const Send& send : step) {
        balance[static_cast<std::size_t>(send.from.value())] +=
            static_cast<std::int64_t>(send.bytes);
        balance[static_cast<std::size_t>(send.to.value())] -= static_cast<std::int64_t>(send.bytes);
      }
    }
    EXPECT_EQ(balance, std::vector<std::int64_t>(64)) << "seed " << seed;
  }
}

// Bytes and busy times, counted send by send.
std::map<LinkId, LinkLoad> LoadsOneByOne(const Plan& plan, const Fabric& fabric) {
  std::map<LinkId, std::vector<std::pair<VirtualTime, VirtualTime>>> intervals;
  std::map<LinkId, LinkLoad> loads;
  for (std::size_t index = 0; index < plan.schedule.scheduled_count(); ++index) {
    const StepTimes& times = plan.times.steps[index];
    ForEachSend(plan.schedule, index, [&](const Send& send) {
      const int from = Fabric::DomainOf(send.from);
      const int to = Fabric::DomainOf(send.to);
      std::vector<LinkId> route = {fabric.NicOf(send.from, NicDirection::kOut),
                                   fabric.NicOf(send.to, NicDirection::kIn)};
      if (from == to) {
        route = *fabric.domain(from).FindRoute(Fabric::LocalOf(send.from), Fabric::LocalOf(send.to),
                                               plan.schedule.scheduled[index].through);
        for (LinkId& link : route) link = fabric.LinkOf(from, link);
      }
      for (const LinkId link : route) {
        loads[link].link = link;
        loads[link].bytes += send.bytes;
        intervals[link].emplace_back(times.departure, times.end);
      }
    });
  }
  for (auto& [link, all] : intervals) {
    std::ranges::sort(all);
    VirtualTime covered;
    for (const auto& [begin, end] : all) {
      if (end > covered) loads[link].busy += end - std::max(begin, covered);
      covered = std::max(covered, end);
    }
  }
  return loads;
}

TEST(LinkLoadsTest, ManyDomainsAndChunksCountAsIfEachWereCountedAlone) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    const int domains = 2 + static_cast<int>(rng.Below(3));
    std::vector<TorusLinks> tori(static_cast<std::size_t>(domains),
                                 seed % 3 == 0 ? UltraServer({}) : Instance({}));
    if (seed % 2 == 0) {  // one is not like the others
      ASSERT_TRUE(tori[rng.Below(tori.size())].SetCablePermille(0, 0).ok());
    }
    // A node of layer 3 above all: no uplink is crossed.
    const Fabric fabric(tori, hw::kTrainium2.links.efa, {},
                        RegularPlaces(domains, {.domains_under_layer3 = 100}));
    std::vector<Member> members;
    for (int domain = 0; domain < domains; ++domain) {
      for (const Member& local : MembersOf(seed % 5 == 0 ? 0x8235 : 0x0ff0)) {
        members.push_back({.chip = Fabric::ChipOf(domain, local.chip.value())});
      }
    }
    const Request request{.operation = kAll[rng.Below(5)], .bytes = 4096 * (1 + rng.Below(5000))};
    const auto plan = PlanOnFabric(request, members, fabric);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto loads = LoadsOf(*plan, fabric);
    ASSERT_TRUE(loads.ok()) << loads.status();
    const std::map<LinkId, LinkLoad> expected = LoadsOneByOne(*plan, fabric);
    ASSERT_EQ(loads->size(), expected.size()) << "seed " << seed;
    for (const LinkLoad& load : *loads) {
      EXPECT_EQ(load.bytes, expected.at(load.link).bytes) << fabric.Name(load.link);
      EXPECT_EQ(load.busy, expected.at(load.link).busy) << fabric.Name(load.link);
    }
  }
}

}  // namespace
}  // namespace tahoma::sim

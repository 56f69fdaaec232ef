// Tests traces of several topology domains: NICs and uplinks carry the traffic between them, and
// show in all formats.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "sim-node/trace/formats.h"
#include "sim-node/trace/occupancy.h"
#include "sim-node/trace/trace_options.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using ::testing::HasSubstr;
using torus::ChipIndex;

// Domains 0 and 1 under one node of layer 3, 2 and 3 under another.
Fabric FourInstances(const EfaTiming& efa = {}) {
  return {std::vector<TorusLinks>(4, testing::Instance({})), hw::kTrainium2.links.efa, efa,
          RegularPlaces(4, {.domains_under_layer3 = 2, .layer3_under_layer2 = 2})};
}

std::vector<Member> AllOf(const Fabric& fabric) {
  std::vector<Member> members;
  for (int domain = 0; domain < fabric.domain_count(); ++domain) {
    for (int chip = 0; chip < fabric.domain(domain).torus().chip_count(); ++chip) {
      members.push_back({.chip = Fabric::ChipOf(domain, chip)});
    }
  }
  return members;
}

std::map<LinkId, std::uint64_t> BytesByLink(const Occupancy& use) {
  std::map<LinkId, std::uint64_t> bytes;
  for (const LinkUse& one : use.uses) bytes[one.link] += one.bytes;
  return bytes;
}

TEST(FabricOccupancyTest, WhatLeavesADomainIsOnItsNicsAndWhatCrossesALayerOnItsUplinks) {
  const Fabric fabric = FourInstances();
  for (const Operation operation : {Operation::kAllReduce, Operation::kAllGather,
                                    Operation::kAllToAll, Operation::kSendReceive}) {
    const auto plan =
        PlanOnFabric({.operation = operation, .bytes = 4 << 20}, AllOf(fabric), fabric);
    ASSERT_TRUE(plan.ok()) << plan.status();
    std::map<LinkId, std::uint64_t> expected;
    for (std::size_t index = 0; index < plan->schedule.scheduled_count(); ++index) {
      ForEachSend(plan->schedule, index, [&](const Send& send) {
        const int from = Fabric::DomainOf(send.from);
        const int to = Fabric::DomainOf(send.to);
        if (from == to) return;
        expected[fabric.NicOf(send.from, NicDirection::kOut)] += send.bytes;
        expected[fabric.NicOf(send.to, NicDirection::kIn)] += send.bytes;
        if (from / 2 == to / 2) return;
        expected[fabric.UplinkOf(from, 3, NicDirection::kOut)] += send.bytes;
        expected[fabric.UplinkOf(to, 3, NicDirection::kIn)] += send.bytes;
      });
    }
    ASSERT_FALSE(expected.empty());
    const auto use = OccupancyOf(*plan, fabric, true);
    ASSERT_TRUE(use.ok()) << use.status();
    std::map<LinkId, std::uint64_t> carried = BytesByLink(*use);
    const LinkId first_nic = fabric.NicOf(ChipIndex(0), NicDirection::kOut);
    std::erase_if(carried, [&](const auto& entry) { return entry.first < first_nic; });
    EXPECT_EQ(carried, expected) << Name(operation);
  }
}

TEST(FabricOccupancyTest, NoLinkIsFullerThanItCanBe) {
  for (const std::uint32_t over : {1000U, 4000U}) {
    const Fabric fabric = FourInstances({.oversubscription_permille = {1000, 1000, over}});
    const auto plan = PlanOnFabric({.bytes = 64 << 20}, AllOf(fabric), fabric);
    const auto use = OccupancyOf(*plan, fabric, true);
    ASSERT_TRUE(use.ok()) << use.status();
    double fullest_uplink = 0;
    for (LinkId link = 0; link < fabric.id_count(); ++link) {
      EXPECT_LE(use->utilisation[link], 1.0) << fabric.Name(link);
    }
    for (int domain = 0; domain < 4; ++domain) {
      fullest_uplink = std::max(fullest_uplink,
                                use->utilisation[fabric.UplinkOf(domain, 3, NicDirection::kOut)]);
    }
    // It limits where four times as much would like to go through it.
    if (over == 1000) {
      EXPECT_LT(fullest_uplink, 0.75);
    } else {
      EXPECT_GT(fullest_uplink, 0.75);
    }
  }
}

TEST(FabricOccupancyTest, TheWorkOfAScheduledStepLiesWhereItsTimesSay) {
  const Fabric fabric = FourInstances();
  const auto plan = PlanOnFabric({.bytes = 64 << 20}, AllOf(fabric), fabric);
  const auto use = OccupancyOf(*plan, fabric, true);
  ASSERT_EQ(use->work.size(), plan->schedule.scheduled.size());
  std::map<int, std::vector<const ChipWork*>> by_domain;
  for (std::size_t index = 0; index < use->work.size(); ++index) {
    const ChipWork& one = use->work[index];
    EXPECT_EQ(one.step, index);
    EXPECT_EQ(one.start_end, plan->times.steps[index].departure);
    EXPECT_GE(one.start_begin, plan->times.start);
    EXPECT_LE(one.memory_end, plan->times.steps[index].end) << index;
    by_domain[one.domain].push_back(&one);
  }
  for (auto& [domain, works] : by_domain) {
    std::ranges::sort(works, {}, &ChipWork::memory_begin);
    for (std::size_t i = 1; i < works.size(); ++i) {
      EXPECT_LE(works[i - 1]->memory_end, works[i]->memory_begin) << "domain " << domain;
    }
  }
}

TEST(FabricFormatsTest, TheTimelineHasTracksOfNicsAndUplinksWhoseEventsDoNotOverlap) {
  const Fabric fabric = FourInstances();
  const auto plan = PlanOnFabric({.bytes = 16 << 20}, AllOf(fabric), fabric);
  const auto use = OccupancyOf(*plan, fabric, true);
  const Json trace = ParseJson(ChromeTrace(*use, fabric, "t"));
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::string> threads;
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> events;
  std::size_t links = 0;
  for (const Json& event : trace.at("traceEvents")) {
    const std::pair<int, int> track(event.at("pid"), event.at("tid"));
    if (event.at("ph") == "M") {
      const std::string name = event.at("args").at("name");
      if (event.at("name") == "process_name") {
        EXPECT_TRUE(processes.emplace(track.first, name).second) << name << " has another's number";
      } else {
        EXPECT_TRUE(threads.emplace(track, name).second) << name;
      }
      continue;
    }
    links += event.at("cat") == "link" ? 1U : 0U;
    const double begin = event.at("ts");
    events[track].emplace_back(begin, begin + event.at("dur").get<double>());
  }
  EXPECT_EQ(links, use->uses.size());
  EXPECT_EQ(processes.at(0), "domain 0 chip 0 (0,0,0)");
  EXPECT_EQ(processes.at(3 * 64 + 15), "domain 3 chip 15 (3,3,0)");
  EXPECT_EQ(threads.at({64, 6}), "efa out");
  EXPECT_EQ(threads.at({64, 7}), "efa in");
  EXPECT_EQ(processes.at(256), "network layer 3 node 0");
  EXPECT_EQ(processes.at(257), "network layer 3 node 1");
  EXPECT_EQ(threads.at({257, 0}), "up");
  EXPECT_EQ(processes.at(260), "in every chip");
  for (auto& [track, list] : events) {
    EXPECT_TRUE(threads.contains(track)) << track.first << " " << track.second;
    std::ranges::sort(list);
    for (std::size_t i = 1; i < list.size(); ++i) {
      EXPECT_LE(list[i - 1].second, list[i].first + 1e-6) << threads[track];
    }
  }
}

TEST(FabricFormatsTest, TheTablesHaveTheNicsOfEachDomainAndTheUplinks) {
  Fabric fabric = FourInstances();
  ASSERT_TRUE(fabric.SetNicPermille(Fabric::ChipOf(2, 5), 0).ok());
  const auto plan = PlanOnFabric({.bytes = 16 << 20}, AllOf(fabric), fabric);
  const auto use = OccupancyOf(*plan, fabric, true);
  const std::string text = HeatMapText(*use, fabric);
  EXPECT_TRUE(text.starts_with(
      "domain 0 plane z=0\n  chip     x-     x+     y-     y+     z-     z+  efa out   efa in\n"))
      << text;
  EXPECT_THAT(text, HasSubstr("\n\ndomain 3 plane z=0\n"));
  EXPECT_THAT(text, HasSubstr("     down     down\n"));
  EXPECT_THAT(text, HasSubstr("\nnetwork                  up   down\nlayer 3 node 0"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4 * (2 + 16) + 3 + 1 + 1 + 2 + 1 + 1);
}

TEST(FabricFormatsTest, ThePictureHasARowForEachDomainAndBoxesForNicsAndUplinks) {
  const Fabric fabric = FourInstances();
  const auto plan = PlanOnFabric({.bytes = 16 << 20}, AllOf(fabric), fabric);
  const std::string svg = HeatMapSvg(*OccupancyOf(*plan, fabric, true), fabric, "t");
  const auto count = [&](std::string_view what) {
    std::size_t found = 0;
    for (std::size_t at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("<line "), 4U * 64);
  EXPECT_EQ(count(" EFA out: "), 64U);
  EXPECT_EQ(count(" EFA in: "), 64U);
  EXPECT_EQ(count("up: "), 4U) << "two nodes of layer 3, one each of layers 2 and 1";
  for (int domain = 0; domain < 4; ++domain) {
    EXPECT_EQ(count(fmt::format(">domain {}</text>", domain)), 1U);
  }
  EXPECT_EQ(count("<title>"), count("</title>"));
}

TraceOptions OfDomains(std::int64_t domains) {
  TraceOptions options;
  options.domains = domains;
  options.domain_torus = "4x4";
  options.box = "4x4";
  options.bytes = 16 << 20;
  return options;
}

TEST(FabricTraceOptionsTest, TheTimeIsThatOfThePlan) {
  TraceOptions options = OfDomains(4);
  options.domains_under_layer3 = 2;
  options.layer3_under_layer2 = 2;
  const auto traced = TraceOf(options);
  ASSERT_TRUE(traced.ok()) << traced.status();
  EXPECT_THAT(traced->title, HasSubstr("all_reduce of 16777216 bytes fp32 on 4 domains of 4x4x1"));
  const Fabric fabric = FourInstances();
  const auto plan = PlanOnFabric({.bytes = 16 << 20}, AllOf(fabric), fabric);
  EXPECT_EQ(traced->use.end, plan->times.end);
}

TEST(FabricTraceOptionsTest, LayersFaultsAndChoicesChangeTheTime) {
  const auto end = [](auto set) {
    TraceOptions options = OfDomains(4);
    options.domains_under_layer3 = 1;
    set(options);
    const auto traced = TraceOf(options);
    EXPECT_TRUE(traced.ok()) << traced.status();
    return traced.ok() ? traced->use.end : VirtualTime{};
  };
  const VirtualTime whole = end([](TraceOptions&) {});
  EXPECT_GT(end([](TraceOptions& o) { o.efa.layer3_oversubscription = 4; }), whole);
  EXPECT_GT(end([](TraceOptions& o) { o.efa.layer_latency = std::chrono::microseconds(20); }),
            whole);
  EXPECT_LT(end([](TraceOptions& o) { o.efa.packet_latency = std::chrono::microseconds(2); }),
            whole);
  EXPECT_GT(end([](TraceOptions& o) { o.efa_down = {"2/5"}; }), whole);
  EXPECT_GT(end([](TraceOptions& o) { o.down = {"1/5:x+", "3/5:x+"}; }), whole);
  EXPECT_GT(end([](TraceOptions& o) { o.chunks = 1; }), whole);
  EXPECT_GT(end([](TraceOptions& o) { o.between = "ring"; }), VirtualTime{});
  EXPECT_EQ(end([](TraceOptions& o) { o.efa.layer1_oversubscription = 4; }), whole)
      << "nothing climbs above layer 1";
}

TEST(FabricTraceOptionsTest, WrongOptionsAreNamedWithWhatWouldBeRight) {
  const auto message = [](std::int64_t domains, auto set) {
    TraceOptions options = OfDomains(domains);
    set(options);
    return std::string(Message(TraceOf(options).status()));
  };
  EXPECT_EQ(message(2, [](TraceOptions& o) { o.domain_torus = "8x8"; }),
            "domain-torus: \"8x8\" is no torus of a domain; expected 4x4x4 (UltraServer) or 4x4");
  EXPECT_EQ(message(2, [](TraceOptions& o) { o.level = "flits"; }),
            "level: several domains are timed by flows; \"flits\" is for one");
  EXPECT_EQ(message(1, [](TraceOptions& o) { o.chunks = 2; }),
            "between and chunks need several domains; here is one");
  EXPECT_EQ(message(2, [](TraceOptions& o) { o.between = "star"; }),
            "between: unknown algorithm \"star\"; expected auto, ring, mesh or rdh");
  EXPECT_EQ(message(2, [](TraceOptions& o) { o.efa_down = {"0"}; }),
            "efa-down: \"0\" is no chip of a domain; expected for example 1/5 in domain 1");
  for (const std::string cable : {"2/5:x+", "/5:x+", "1/16:x+", "1/5"}) {
    EXPECT_EQ(message(2, [&](TraceOptions& o) { o.down = {cable}; }),
              fmt::format("down: \"{}\" is no cable; expected a chip and a port, for example 5:x+, "
                          "or 1/5:x+ in domain 1",
                          cable));
  }
  EXPECT_EQ(message(2, [](TraceOptions& o) { o.down = {"1/5:z+"}; }),
            "down: \"1/5:z+\" is no cable of a torus of 4x4x1");
  EXPECT_EQ(message(2, [](TraceOptions& o) { o.efa_down = {"1/16"}; }),
            "efa-down: \"1/16\" is no chip of a domain; expected for example 1/5 in domain 1");
  EXPECT_EQ(message(1, [](TraceOptions& o) { o.efa_down = {"0/1"}; }),
            "efa-down: \"0/1\" is of no use in one domain; expected domains of 2 or more");
  EXPECT_EQ(message(2, [](TraceOptions& o) { o.efa.layer2_oversubscription = 1.0005; }),
            "layer2Oversubscription is 1.0005; expected at most three decimals");
  EXPECT_EQ(message(2, [](TraceOptions& o) { o.at = "1,0,0"; }),
            "no box of 4x4 begins at 1,0,0 in a torus of 4x4x1; expected for example 0,0,0");
  EXPECT_THAT(message(2,
                      [](TraceOptions& o) {
                        for (int i = 0; i < 16; ++i) o.efa_down.push_back(fmt::format("1/{}", i));
                      }),
              HasSubstr("the EFA NICs of all 16 chips of domain 1 are down"));
}

TEST(EfaLayersTest, NumbersBecomeThousandthsAndPicoseconds) {
  const auto plain = EfaTimingOf({});
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(*plain, EfaTiming{}) << "the defaults are the engine's";
  const auto timing = EfaTimingOf({.layer1_oversubscription = 1.5,
                                   .layer2_oversubscription = 3,
                                   .layer3_oversubscription = 1.001,
                                   .layer_latency = std::chrono::nanoseconds(700),
                                   .packet_latency = std::chrono::microseconds(9)});
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(*timing, (EfaTiming{.packet = Microseconds(9),
                                .layer = Microseconds(0.7),
                                .oversubscription_permille = {1500, 3000, 1001}}));
}

}  // namespace
}  // namespace tahoma::sim

// Tests that the timeline shows what the plan did: bytes are conserved, no link is busier than it
// can be, and the formats are what their readers expect.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/hw/catalogue.h"
#include "sim-node/trace/formats.h"
#include "sim-node/trace/occupancy.h"
#include "sim-node/trace/summary.h"
#include "sim-node/trace/trace_options.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using ::testing::HasSubstr;
using testing::Instance;
using testing::UltraServer;
using torus::ChipIndex;

TEST(OccupancyTest, EveryByteOfEveryMessageIsOnEveryLinkOfItsRoute) {
  const TorusLinks links = UltraServer();
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllToAll, Operation::kBroadcast}) {
    const auto plan =
        PlanCollective({.operation = operation, .bytes = 1 << 20}, MembersOf(0xffff'ffff), links);
    ASSERT_TRUE(plan.ok());
    std::uint64_t sent = 0;
    for (const Step& step : plan->schedule.steps) {
      for (const Send& send : step) {
        sent += send.bytes * links.FindRoute(send.from, send.to, plan->schedule.through)->size();
      }
    }
    const auto use = OccupancyOf(*plan, Fabric(links), true);
    ASSERT_TRUE(use.ok());
    std::uint64_t carried = 0;
    for (const LinkUse& one : use->uses) carried += one.bytes;
    EXPECT_EQ(carried, sent) << Name(operation);
  }
}

TEST(OccupancyTest, NoLinkCarriesMoreThanItsRateInAnyStepOrOverall) {
  TorusLinks links = UltraServer();
  ASSERT_TRUE(links.SetPermille(7, 300).ok());
  ASSERT_TRUE(links.SetCablePermille(20, 0).ok());
  for (const Algorithm algorithm : {Algorithm::kMesh, Algorithm::kRdh, Algorithm::kRing}) {
    const auto plan = PlanWith(algorithm, {.bytes = 4 << 20}, MembersOf(kAllChips), links);
    ASSERT_TRUE(plan.ok());
    const auto use = OccupancyOf(*plan, Fabric(links), true);
    ASSERT_TRUE(use.ok());
    for (const LinkUse& one : use->uses) {
      EXPECT_GE(one.begin, use->start);
      EXPECT_LE(one.end, use->end);
      EXPECT_GE(one.end - one.begin, TransferTime(one.bytes, links.capacity(one.link)))
          << TorusLinks::Name(one.link) << " step " << one.step;
    }
    for (const double share : use->utilisation) EXPECT_LE(share, 1.0);
    EXPECT_EQ(use->utilisation[20], 0);
  }
}

TEST(OccupancyTest, HalvingAndDoublingKeepsAllLinksOfAnInstanceEquallyBusy) {
  const TorusLinks links = Instance();
  const auto plan =
      PlanWith(Algorithm::kRdh, {.bytes = std::uint64_t{1} << 30}, MembersOf(0xffff), links);
  const auto use = OccupancyOf(*plan, Fabric(links), true);
  for (LinkId link = 0; link < links.id_count(); ++link) {
    if (links.Exists(link)) {
      EXPECT_NEAR(use->utilisation[link], 0.997, 0.001) << link;
    } else {
      EXPECT_EQ(use->utilisation[link], 0);
    }
  }
}

TEST(OccupancyTest, UsesOfALinkDoNotOverlapWhenStepsFollowOneAnother) {
  const TorusLinks links = Instance(LinkTiming{});
  const auto plan = PlanWith(Algorithm::kRing, {.bytes = 64 << 20}, MembersOf(0xffff), links);
  const auto use = OccupancyOf(*plan, Fabric(links), true);
  std::map<LinkId, VirtualTime> free;
  for (const LinkUse& one : use->uses) {
    EXPECT_GE(one.begin, free[one.link]);
    EXPECT_GE(one.end - one.begin, TransferTime(one.bytes, links.capacity(one.link)));
    free[one.link] = one.end;
  }
}

TEST(OccupancyTest, OneChipUsesNoLink) {
  const TorusLinks links = Instance();
  const auto plan = PlanCollective({.bytes = 64}, MembersOf(1), links);
  const auto use = OccupancyOf(*plan, Fabric(links), true);
  ASSERT_TRUE(use.ok());
  EXPECT_TRUE(use->uses.empty());
}

TEST(FormatsTest, TheTimelineHasAnEventForEveryUseAndANameForEveryLink) {
  const TorusLinks links = Instance();
  const auto plan = PlanCollective({.bytes = 8 << 20}, MembersOf(0xff), links);
  const auto use = OccupancyOf(*plan, Fabric(links), true);
  const Json trace = ParseJson(ChromeTrace(*use, Fabric(links), "a \"title\""));
  EXPECT_EQ(trace.at("otherData").at("title"), "a \"title\"");
  std::size_t events = 0;
  std::map<std::string, int> names;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M") {
      if (event.at("pid") < 16) ++names[event.at("name").get<std::string>()];
      continue;
    }
    if (event.at("cat") != "link") continue;
    const LinkUse& one = use->uses.at(events++);
    EXPECT_EQ(event.at("pid").get<LinkId>() * 6 + event.at("tid").get<LinkId>(), one.link);
    EXPECT_EQ(event.at("args").at("bytes"), one.bytes);
    EXPECT_NEAR(event.at("ts").get<double>() * 1e3, Nanoseconds(one.begin.time_since_epoch()),
                1e-3);
    EXPECT_GT(event.at("dur").get<double>(), 0);
  }
  EXPECT_EQ(events, use->uses.size());
  EXPECT_EQ(names.at("process_name"), 16);
  EXPECT_EQ(names.at("thread_name"), 64);
}

TEST(FormatsTest, TheHeatMapHasATableForEachPlaneInUseAndMarksBrokenLinks) {
  TorusLinks links = UltraServer();
  const LinkId broken = TorusLinks::IdOf(ChipIndex(5), torus::Axis::kX, torus::Direction::kPlus);
  ASSERT_TRUE(links.SetCablePermille(broken, 0).ok());
  const auto map = [&](torus::ChipMask mask) {
    const auto plan = PlanCollective({.bytes = 8}, MembersOf(mask), links);
    return HeatMapText(*OccupancyOf(*plan, Fabric(links), true), Fabric(links));
  };
  const std::string header = "  chip     x-     x+     y-     y+     z-     z+\n";
  const std::string one = map(0xffff);
  EXPECT_TRUE(one.starts_with("plane z=0\n" + header + "     0     0%     0%"));
  EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 2 + 16);
  EXPECT_THAT(one, HasSubstr("\n     5     0%   down     0%     0%     0%     0%\n"));
  EXPECT_THAT(map(0xffff'ffff), HasSubstr("\n\nplane z=1\n" + header));
  EXPECT_EQ(map(1), "no link is used\n");
}

TEST(FormatsTest, ThePictureIsWellFormedAndEscapesItsTitle) {
  const TorusLinks links = Instance();
  const auto plan = PlanCollective({.bytes = 8 << 20}, MembersOf(0xffff), links);
  const std::string svg =
      HeatMapSvg(*OccupancyOf(*plan, Fabric(links), true), Fabric(links), "a < b & c");
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c</text>"));
  const auto count = [&](std::string_view what) {
    std::size_t found = 0;
    for (std::size_t at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("<line "), 64u);
  EXPECT_EQ(count("<circle "), 0u);  // an instance has no Z links
  EXPECT_EQ(count("<title>"), count("</title>"));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

// CC-cores, DMA engines and HBM have rows of their own, which the steps' times explain.
TEST(FormatsTest, TheTimelineShowsWhatTheChipsDoInEveryStep) {
  const TorusLinks links = Instance(LinkTiming{});
  const auto plan = PlanWith(Algorithm::kRing, {.bytes = 64 << 20}, MembersOf(0xffff, 4), links);
  const auto use = OccupancyOf(*plan, Fabric(links), true);
  ASSERT_EQ(use->work.size(), plan->schedule.steps.size());
  std::map<int, double> free;  // us, by thread
  std::map<std::string, int> events;
  const Json trace = ParseJson(ChromeTrace(*use, Fabric(links), ""));
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("pid") != 16 || event.at("ph") != "X") continue;
    ++events[event.at("cat").get<std::string>()];
    const double begin = event.at("ts").get<double>();
    EXPECT_GE(begin, free[event.at("tid").get<int>()] - 1e-6);
    free[event.at("tid").get<int>()] = begin + event.at("dur").get<double>();
  }
  EXPECT_EQ(events, (std::map<std::string, int>{{"start", 30}, {"memory", 30}}));
  for (const ChipWork& one : use->work) {
    const StepTimes& step = plan->times.steps[one.step];
    EXPECT_GE(one.start_end - one.start_begin, Microseconds(4 * 1.3));  // rank after rank
    EXPECT_LE(one.start_end, step.departure);
    EXPECT_LE(one.memory_end, step.end);
  }
}

TEST(TraceOptionsTest, TheTitleSaysWhatWasAskedAndWhatTheLinksAllow) {
  TraceOptions options;
  options.operation = "alltoall";
  options.box = "4x4";
  options.bytes = 1 << 20;
  const auto traced = TraceOf(options);
  ASSERT_TRUE(traced.ok()) << traced.status();
  EXPECT_THAT(traced->title, HasSubstr("all_to_all of 1048576 bytes fp32 on 4x4x1+0,0,0, mesh: "));
  EXPECT_THAT(traced->title, HasSubstr("1 steps; the links allow 4.10 us"));
}

TEST(TraceOptionsTest, TheLevelTellsTheTimeAndTheTitleNamesIt) {
  TraceOptions options;
  options.operation = "alltoall";
  options.box = "4x4x1";
  options.bytes = 1 << 20;
  for (const auto& [level, said] :
       {std::pair("closed-form", "7.40 us by closed-form"), std::pair("flows", "7.40 us by flows"),
        std::pair("flits", "us by flits")}) {
    options.level = level;
    const auto traced = TraceOf(options);
    ASSERT_TRUE(traced.ok()) << traced.status();
    EXPECT_THAT(traced->title, HasSubstr(said));
  }
  options.level = "exact";
  EXPECT_EQ(Message(TraceOf(options).status()),
            "unknown level \"exact\"; expected one of closed-form, flows, flits");
  options.level = "flits";
  options.bytes = 4 << 20;
  EXPECT_EQ(Message(TraceOf(options).status()),
            "flits are for at most 1048576 bytes; this collective has 4194304");
}

TEST(TraceOptionsTest, WrongOptionsAreNamedWithWhatWouldBeRight) {
  const auto message = [](auto set) {
    TraceOptions options;
    set(options);
    return std::string(Message(TraceOf(options).status()));
  };
  EXPECT_THAT(message([](TraceOptions& o) { o.operation = "gather"; }),
              HasSubstr("unknown operation \"gather\"; expected one of all_reduce"));
  EXPECT_THAT(message([](TraceOptions& o) { o.box = "3x4"; }), HasSubstr("3"));
  EXPECT_EQ(message([](TraceOptions& o) {
              o.box = "4x4x2";
              o.at = "9,0,0";
            }),
            "no box of 4x4x2 begins at 9,0,0 in a torus of 4x4x4; expected for example 0,0,0");
  for (const std::string cable : {"64:x+", "5", "5:w+", "-1:x+", "5:x", "x+", ""}) {
    EXPECT_EQ(message([&](TraceOptions& o) { o.down = {cable}; }),
              fmt::format("down: \"{}\" is no cable; expected a chip and a port, for example 5:x+",
                          cable));
  }
  EXPECT_EQ(message([](TraceOptions& o) { o.algorithm = "star"; }),
            "unknown algorithm \"star\"; expected one of mesh, rdh, ring, kangaring, tree");
  EXPECT_EQ(message([](TraceOptions& o) {
              o.without = {"cc-cores", "links"};
            }),
            "without: \"links\" is no cost; expected memory, dma-start or cc-cores");
  EXPECT_THAT(message([](TraceOptions& o) { o.bytes = 3; }), HasSubstr("3 bytes are not"));
}

TEST(TraceOptionsTest, ACableThatTheBoxDoesNotHaveIsRefused) {
  TraceOptions options;
  options.box = "4x4";
  options.down = {"20:x+"};
  EXPECT_EQ(Message(TraceOf(options).status()),
            "down: \"20:x+\" is no cable between two chips of 4x4x1+0,0,0");
}

TEST(TraceOptionsTest, OtherToolsNamesAreAnsweredWithOurs) {
  TraceOptions options;
  options.operation = "All-Reduce";
  EXPECT_EQ(Message(TraceOf(options).status()),
            "unknown operation \"All-Reduce\"; did you mean all_reduce?");
  options.operation = "allr";
  options.type = "bfloat16";
  EXPECT_EQ(Message(TraceOf(options).status()),
            "unknown data type \"bfloat16\"; did you mean bf16?");
}

TEST(TraceOptionsTest, BandwidthsAreThoseOfNcclTests) {
  TraceOptions options;
  options.box = "4x4";
  options.bytes = 1 << 30;
  const auto traced = TraceOf(options);
  ASSERT_TRUE(traced.ok()) << traced.status();
  const double seconds = Nanoseconds(traced->answer.time) / 1e9;
  EXPECT_NEAR(traced->answer.AlgorithmBandwidth(), 1 / seconds, 1e-6);
  EXPECT_NEAR(traced->answer.BusBandwidth(), 2.0 * 15 / 16 / seconds, 1e-6);
}

// A time of start-up alone is not thousands of times a bound that knows of none.
TEST(TraceOptionsTest, SmallSizesAreComparedWithStartUpToo) {
  TraceOptions options;
  options.box = "4x4";
  options.bytes = 1024;
  const auto traced = TraceOf(options);
  ASSERT_TRUE(traced.ok()) << traced.status();
  EXPECT_GE(*OverBound(traced->answer), 1);
  EXPECT_LT(*OverBound(traced->answer), 1.1);
}

TEST(TraceOptionsTest, ASweepHasALineForEachSize) {
  TraceOptions options;
  options.box = "4x4";
  options.min_bytes = 1024;
  options.max_bytes = 16384;
  options.step_factor = 4;
  const auto table = SweepOf(options);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(std::ranges::count(*table, '\n'), 4);
  EXPECT_THAT(*table, HasSubstr("busbw(GB/s)"));
  options.output = "json";
  EXPECT_EQ(ParseJson(*SweepOf(options)).size(), 3u);
  options.min_bytes = 1 << 20;
  EXPECT_EQ(Message(SweepOf(options).status()), "minBytes 1048576 is more than maxBytes 16384");
}

TEST(TraceOptionsTest, CostsThatDoNotCountMakeAPlanFaster) {
  const auto end = [](auto set) {
    TraceOptions options;
    options.box = "4x4";
    options.ranks = 4;
    set(options);
    const auto traced = TraceOf(options);
    EXPECT_TRUE(traced.ok()) << traced.status();
    return traced->use.end;
  };
  const VirtualTime all = end([](TraceOptions&) {});
  for (const std::string cost : {"memory", "dma-start"}) {
    EXPECT_LT(end([&](TraceOptions& o) { o.without = {cost}; }), all);
  }
}

TEST(TraceOptionsTest, ABrokenCableIsFollowedAround) {
  TraceOptions options;
  options.box = "4x4";
  options.bytes = 1 << 20;
  const auto whole = TraceOf(options);
  options.down = {"5:x+"};
  const auto broken = TraceOf(options);
  ASSERT_TRUE(broken.ok());
  EXPECT_GT(broken->use.end, whole->use.end);
}

TEST(JsonSummaryTest, ItSaysWhatTheTitleSaysAndHowFullEachKindOfLinkIs) {
  TraceOptions options;
  options.bytes = 64 << 20;
  options.down = {"5:x+"};
  const auto traced = TraceOf(options);
  ASSERT_TRUE(traced.ok()) << traced.status();
  EXPECT_TRUE(traced->use.uses.empty()) << "no timeline was asked for";
  const Json summary = ParseJson(JsonSummary(*traced));
  EXPECT_EQ(summary.at("operation"), "all_reduce");
  EXPECT_EQ(summary.at("bytes"), 64 << 20);
  EXPECT_EQ(summary.at("box"), "4x4x4+0,0,0");
  EXPECT_THAT(traced->title, HasSubstr(fmt::format("{:.2f} us by flows, {} steps; the links allow "
                                                   "{:.2f} us",
                                                   summary.at("timeUs").get<double>(),
                                                   summary.at("steps").get<int>(),
                                                   summary.at("boundUs").get<double>())));
  const Json& x = summary.at("links").at("x");
  EXPECT_EQ(x.at("count"), 128);
  EXPECT_EQ(x.at("down"), 2);
  EXPECT_LE(x.at("leastUtilisation"), x.at("meanUtilisation"));
  EXPECT_LE(x.at("meanUtilisation"), x.at("mostUtilisation"));
  EXPECT_LE(x.at("mostUtilisation"), 1.0);
  EXPECT_FALSE(summary.at("links").contains("efaOut"));
}

TEST(JsonSummaryTest, SeveralDomainsHaveNicsAndUplinksAndABound) {
  TraceOptions options;
  options.domains = 4;
  options.domains_under_layer3 = 2;
  const auto traced = TraceOf(options);
  ASSERT_TRUE(traced.ok()) << traced.status();
  const Json summary = ParseJson(JsonSummary(*traced));
  // A chip has four links of 128 GB/s, two of 64 and a NIC of 25; bytes cross 255 times twice.
  const double bound_us = 2.0 * 255 / 256 * (64 << 20) / 665e3;
  EXPECT_NEAR(summary.at("boundUs").get<double>(), bound_us, 0.01);
  EXPECT_NEAR(
      summary.at("overBound").get<double>(),
      summary.at("timeUs").get<double>() / (bound_us + summary.at("startUpUs").get<double>()),
      0.001);
  const Json& links = summary.at("links");
  EXPECT_EQ(links.at("efaOut").at("count"), 4 * 64);
  EXPECT_EQ(links.at("layer3").at("count"), 2 * 2) << "up and down above two nodes";
  EXPECT_GT(links.at("efaIn").at("mostUtilisation"), 0.2);
  EXPECT_EQ(links.at("layer1").at("mostUtilisation"), 0.0);
  EXPECT_FALSE(links.at("layer1").contains("fullest"));
}

// The defect: past a number of uses the planned answer was thrown away.
TEST(TraceOptionsTest, ManyDomainsHaveATableAndOnlyTheTimelineIsRefused) {
  TraceOptions options;
  options.domains = 64;
  options.chunks = 32;
  options.bytes = std::int64_t{1} << 30;
  const auto traced = TraceOf(options);
  ASSERT_TRUE(traced.ok()) << traced.status();
  EXPECT_THAT(HeatMapText(traced->use, traced->fabric), HasSubstr("domain 63 plane z=3"));
  options.trace_file = "timeline.json";
  EXPECT_THAT(std::string(Message(TraceOf(options).status())),
              HasSubstr("the timeline would have more than 2000000 events"));
}

}  // namespace
}  // namespace tahoma::sim

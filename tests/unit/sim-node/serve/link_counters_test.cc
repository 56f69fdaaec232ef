// Tests the bytes of links against sums over the schedule, and the metrics that a user sees.

#include "sim-node/serve/link_counters.h"

#include <gtest/gtest.h>

#include "lib/base/status.h"
#include "sim-node/serve/communicator_of_instance.h"

namespace tahoma::sim {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::Direction;

Instance MakeInstance(int node_id) {
  auto instance =
      Instance::Create({.type = hw::FindInstanceType("trn2u.48xlarge"),
                        .name = "node",
                        .ultra_server = UltraServerPlace{.id = "us", .node_id = node_id}},
                       [n = std::uint64_t{0}]() mutable {
                         return std::array<std::uint64_t, 2>{++n, 7};
                       });
  EXPECT_TRUE(instance.ok()) << instance.status();
  return *std::move(instance);
}

bool Has(const std::string& text, const std::string& line) {
  return text.find(line + "\n") != std::string::npos;
}

class LinkCountersTest : public ::testing::Test {
 protected:
  LiveInstance live_{MakeInstance(1)};
  rest::Metrics metrics_;
  LinkCounters counters_{metrics_, live_};
  const LinkId x_plus_of_chip_5_ = TorusLinks::IdOf(ChipIndex(16 + 5), Axis::kX, Direction::kPlus);
};

TEST_F(LinkCountersTest, EveryLinkOfTheNodeHasItsSeriesAndNoOther) {
  const std::string text = metrics_.Text();
  std::size_t series = 0;
  for (std::size_t at = 0; (at = text.find("tahoma_link_bytes_total{", at)) != std::string::npos;
       ++at) {
    ++series;
  }
  EXPECT_EQ(series, 96U);
  EXPECT_TRUE(Has(text, R"(tahoma_link_rate_ratio{chip="15",port="z-"} 1)"));
}

TEST_F(LinkCountersTest, OperationsAddUpAndTheLastOneSaysHowFullALinkIs) {
  // 64 kB in 1 us on a link of 128 GB/s: half of the link's capacity.
  counters_.Add({.loads = {{x_plus_of_chip_5_, 64'000, Microseconds(0.75)}},
                 .time = Microseconds(1),
                 .times = 3});
  counters_.Add(
      {.loads = {{x_plus_of_chip_5_, 32'000, Microseconds(0.25)}}, .time = Microseconds(1)});
  const std::string text = metrics_.Text();
  EXPECT_TRUE(Has(text, R"(tahoma_link_bytes_total{chip="5",port="x+"} 224000)")) << text;
  EXPECT_TRUE(Has(text, R"(tahoma_link_busy_seconds_total{chip="5",port="x+"} 2.5e-06)"));
  EXPECT_TRUE(Has(text, R"(tahoma_link_utilization_ratio{chip="5",port="x+"} 0.25)"));
  EXPECT_TRUE(Has(text, R"(tahoma_link_bytes_total{chip="5",port="x-"} 0)"));
}

TEST_F(LinkCountersTest, LinksOfOtherNodesAreTheirs) {
  counters_.Add({.loads = {{TorusLinks::IdOf(ChipIndex(5), Axis::kX, Direction::kPlus), 1, {}}},
                 .time = Microseconds(1)});
  EXPECT_TRUE(Has(metrics_.Text(), R"(tahoma_link_bytes_total{chip="5",port="x+"} 0)"));
}

TEST_F(LinkCountersTest, StatesFollowTheInstance) {
  ASSERT_TRUE(
      live_.Change([](Instance& node) { return node.SetLink(5, *ParsePort("x+"), 250); }).ok());
  ASSERT_TRUE(
      live_.Change([](Instance& node) { return node.BreakChip(9, ChipFault::kDead); }).ok());
  counters_.ShowStates();
  const std::string text = metrics_.Text();
  EXPECT_TRUE(Has(text, R"(tahoma_link_rate_ratio{chip="5",port="x+"} 0.25)"));
  EXPECT_TRUE(Has(text, R"(tahoma_link_rate_ratio{chip="6",port="x-"} 0.25)"));
  EXPECT_TRUE(Has(text, R"(tahoma_link_rate_ratio{chip="9",port="z+"} 0)"));
  EXPECT_TRUE(Has(text, R"(tahoma_link_rate_ratio{chip="10",port="x-"} 0)"));
}

TEST_F(LinkCountersTest, TheHeatMapShowsPerCentAndWhatIsDown) {
  counters_.Add({.loads = {{x_plus_of_chip_5_, 64'000, Microseconds(1)}}, .time = Microseconds(1)});
  ASSERT_TRUE(
      live_.Change([](Instance& node) { return node.SetLink(5, *ParsePort("y+"), 0); }).ok());
  counters_.ShowStates();
  const std::string map = counters_.HeatMap();
  EXPECT_TRUE(Has(map, "  chip     x-     x+     y-     y+     z-     z+")) << map;
  EXPECT_TRUE(Has(map, "     5     0%    50%     0%   down     0%     0%")) << map;
}

TEST(LinkCountersAloneTest, AnInstanceOfOneChipHasNone) {
  auto instance =
      Instance::Create({.type = hw::FindInstanceType("trn2.3xlarge"), .name = "node"}, [] {
        return std::array<std::uint64_t, 2>{1, 7};
      });
  ASSERT_TRUE(instance.ok());
  const LiveInstance live(*std::move(instance));
  rest::Metrics metrics;
  const LinkCounters counters(metrics, live);
  EXPECT_EQ(metrics.Text().find("tahoma_link"), std::string::npos);
  EXPECT_TRUE(Has(counters.HeatMap(), "     0      -      -      -      -      -      -"));
}

// End to end: the counters have the bytes of a collective's schedule.
TEST_F(LinkCountersTest, ACollectivesBytesArriveInTheCounters) {
  const TorusLinks links = live_.Read(LinksAround);
  Communicators communicators({.node_id = 1, .links = links});
  communicators.Observe([&](const Communicators::Traffic& traffic) { counters_.Add(traffic); });
  std::vector<Member> members;
  for (int chip = 16; chip < 32; ++chip) members.push_back({.chip = ChipIndex(chip), .ranks = 1});
  ASSERT_TRUE(
      communicators.Join({.comm_id = "c", .rank = 0, .world_size = 1, .members = members}).ok());
  const RunSpec spec{.request = {.bytes = 1 << 20}, .iterations = 2};
  ASSERT_TRUE(communicators.Run("c", 0, spec).ok());
  const auto plan = PlanCollective(spec.request, members, links);
  ASSERT_TRUE(plan.ok());
  std::map<LinkId, std::uint64_t> carried;
  for (const Step& step : plan->schedule.steps) {
    for (const Send& send : step) {
      const auto route = links.FindRoute(send.from, send.to, plan->schedule.through);
      ASSERT_TRUE(route.ok());
      for (const LinkId link : *route) carried[link] += 2 * send.bytes;
    }
  }
  const std::string text = metrics_.Text();
  for (LinkId link = 96; link < 192; ++link) {
    const std::string line =
        fmt::format("tahoma_link_bytes_total{{chip=\"{}\",port=\"{}\"}} {}", link / 6 - 16,
                    PortName(kAllPorts[link % 6]), carried[link]);
    EXPECT_TRUE(Has(text, line)) << line;
  }
}

}  // namespace
}  // namespace tahoma::sim

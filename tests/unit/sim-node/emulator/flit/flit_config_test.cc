#include "sim-node/emulator/flit/flit_config.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::Direction;
using torus::Shape;

TEST(FlitConfig, GivesEachAxisOfAnUltraServerItsRate) {
  const auto config = FlitConfig::Of(TorusLinks(torus::kUltraServerShape, hw::kTrainium2.links));
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->link_period, (std::array{1, 1, 2}));  // Z is half of X and Y
  EXPECT_TRUE(config->local_port_per_link);
  EXPECT_TRUE(config->Validate().ok());
}

TEST(FlitConfig, CountsCyclesOfTheFastestLinkThatExists) {
  const auto config = FlitConfig::Of(TorusLinks(Shape::Of<1, 1, 4>(), hw::kTrainium2.links));
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->link_period, (std::array{1, 1, 1}));
}

TEST(FlitConfig, RefusesLinksBelowTheirRateNamingOne) {
  TorusLinks links(torus::kInstanceShape, hw::kTrainium2.links);
  ASSERT_TRUE(
      links.SetPermille(TorusLinks::IdOf(ChipIndex(5), Axis::kX, Direction::kPlus), 500).ok());
  const auto config = FlitConfig::Of(links);
  EXPECT_EQ(config.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(config.status()),
            "chip 5 x+ is not healthy; the flit level knows only links at full rate");
}

TEST(FlitConfig, RefusesRatesThatAreNoMultiples) {
  const auto config = FlitConfig::Of(TorusLinks(
      torus::kUltraServerShape, {.intra_instance = 100, .inter_instance = 64, .efa = 1}));
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(config.status()),
            "a link of 100 B/s beside one of 64 B/s: expected a whole multiple");
}

TEST(FlitConfig, ValidateNamesTheValueAndWhatWouldBeRight) {
  struct Case {
    std::function<void(FlitConfig&)> change;
    std::string message;
  };
  for (const Case& c : std::vector<Case>{
           {[](FlitConfig& f) { f.vcs = 1; }, "vcs is 1; expected 2 to 8"},
           {[](FlitConfig& f) { f.vcs = 9; }, "vcs is 9; expected 2 to 8"},
           {[](FlitConfig& f) { f.vcs = 3; }, "vcs is 3; a dateline needs an even number"},
           {[](FlitConfig& f) {
              f.vcs = 6;
              f.local_port_per_link = true;
            },
            "vcs is 6; expected 2 to 5"},
           {[](FlitConfig& f) {
              f.vcs = 0;
              f.dateline = Dateline::kOff;
            },
            "vcs is 0; expected 1 to 8"},
           {[](FlitConfig& f) { f.buffer_flits = 0; }, "buffer_flits is 0; expected 1 to 4096"},
           {[](FlitConfig& f) { f.packet_flits = 0; }, "packet_flits is 0; expected 1 to 65535"},
           {[](FlitConfig& f) { f.flit_bytes = -1; }, "flit_bytes is -1; expected 1 to 65536"},
           {[](FlitConfig& f) { f.route_cycles = -1; }, "route_cycles is -1; expected 0 to 10000"},
           {[](FlitConfig& f) { f.crossbar_cycles = 0; },
            "crossbar_cycles is 0; expected 1 to 10000"},
           {[](FlitConfig& f) { f.link_cycles = 0; }, "link_cycles is 0; expected 1 to 10000"},
           {[](FlitConfig& f) { f.local_cycles = 0; }, "local_cycles is 0; expected 1 to 10000"},
           {[](FlitConfig& f) { f.link_period[2] = 0; },
            "link_period of z is 0; expected 1 to 10000"},
           {[](FlitConfig& f) { f.watchdog_cycles = 8; },
            "watchdog_cycles is 8; expected 9 to 2147483647"},
       }) {
    SCOPED_TRACE(c.message);
    FlitConfig config;
    c.change(config);
    EXPECT_EQ(Message(config.Validate()), c.message);
  }
  EXPECT_TRUE(FlitConfig().Validate().ok());
  EXPECT_TRUE(FlitConfig::Reference().Validate().ok());
}

TEST(FlitConfig, FillIsThePipelineOfEachRouterAndTheLinksBetween) {
  const FlitConfig config = FlitConfig::Reference();
  // By hand from BookSim2's stages: 2 cycles into the router, 3 in it, 2 to the chip; 6 more for
  // each link and the router behind it.
  EXPECT_EQ(config.FillCycles({0, 0, 0}), 7);
  EXPECT_EQ(config.FillCycles({1, 1, 1}), 25);
}

TEST(FlitConfig, ASlowLinkAddsToTheFillTimeOnlyBehindAnotherSlowLink) {
  FlitConfig config;
  config.link_period = {1, 1, 2};
  EXPECT_EQ(config.FillCycles({0, 0, 1}), 13);  // its own time is in the transfer's
  EXPECT_EQ(config.FillCycles({0, 0, 2}), 20);  // the second receives the whole flit first
}

}  // namespace
}  // namespace tahoma::sim

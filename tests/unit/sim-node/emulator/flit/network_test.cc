// Times are compared with arithmetic by hand; flits under load are checked against impossible
// events.

#include "sim-node/emulator/flit/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "lib/torus/path.h"

namespace tahoma::sim {
namespace {

using ::testing::ElementsAre;
using torus::Axis;
using torus::ChipIndex;
using torus::Coord;
using torus::Direction;
using torus::Shape;

constexpr Shape kRing8 = Shape::Of<8, 1, 1>();
const std::vector<Shape> kShapes = {
    Shape::Of<2, 1, 1>(),  Shape::Of<1, 5, 1>(),  kRing8,
    Shape::Of<1, 1, 16>(), torus::kInstanceShape, torus::kUltraServerShape,
    Shape::Of<2, 3, 5>()};

FlitConfig SlowZ() {
  FlitConfig config;
  config.link_period = {1, 1, 2};
  return config;
}

// Cycles from the begin until the last packet has arrived, by tag.
std::map<std::uint64_t, std::uint64_t> RunAll(FlitNetwork& network) {
  std::map<std::uint64_t, std::uint64_t> arrivals;
  while (network.busy() && !network.deadlock()) {
    for (const FlitNetwork::Arrival& packet : network.Step()) {
      arrivals[packet.tag] = network.cycle();
    }
  }
  return arrivals;
}

std::uint64_t LoneTime(const Shape& torus, const FlitConfig& config, ChipIndex from, ChipIndex to,
                       std::uint64_t flits) {
  FlitNetwork network(torus, config, 1);
  network.Send({.from = from, .to = to, .flits = flits, .tag = 0});
  return RunAll(network).at(0);
}

// Every chip sends packets at the full rate of its port for this many cycles.
void Load(
    FlitNetwork& network, Rng& rng, std::uint64_t cycles,
    const std::function<void()>& after_step = [] {}) {
  const auto chips = static_cast<std::uint64_t>(network.torus().chip_count());
  const auto size = static_cast<std::uint64_t>(network.config().packet_flits);
  for (std::uint64_t i = 0; i < cycles && !network.deadlock(); ++i) {
    for (int chip = 0; chip < network.torus().chip_count(); ++chip) {
      if (!rng.Chance(1, size)) continue;
      network.Send({.from = ChipIndex(chip),
                    .to = ChipIndex(static_cast<int>(rng.Below(chips))),
                    .flits = size});
    }
    network.Step();
    after_step();
  }
}

TEST(FlitNetwork, AFlitOverThreeLinksTakesThePipelinesOfFourRouters) {
  // 2 cycles into the router; route, channel, switch, crossbar and 3 on the link, where the switch
  // is granted two cycles after the arrival: 6 for each link; then 5 to the chip, and 1 for the
  // flit itself.
  EXPECT_EQ(LoneTime(torus::kUltraServerShape, FlitConfig(), ChipIndex(0), ChipIndex(21), 1),
            2u + 3 * 6 + 5 + 1);
  EXPECT_EQ(LoneTime(torus::kUltraServerShape, FlitConfig(), ChipIndex(0), ChipIndex(21), 8),
            2u + 3 * 6 + 5 + 8);
}

TEST(FlitNetwork, EveryPairIsItsFillApartOnEveryShape) {
  const FlitConfig config = SlowZ();
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.ToString());
    for (int to = 0; to < shape.chip_count(); ++to) {
      const int from = (to * 7 + 3) % shape.chip_count();
      std::array<int, 3> hops{};
      for (const torus::Hop& hop : torus::Route(shape, ChipIndex(from), ChipIndex(to))) {
        ++hops.at(static_cast<std::size_t>(hop.axis));
      }
      const bool slow = hops[2] != 0;
      const auto fill = static_cast<std::uint64_t>(config.FillCycles(hops));
      const auto less = static_cast<std::uint64_t>(slow ? config.CatchUpCycles() : 0);
      SCOPED_TRACE(fmt::format("{} to {}", from, to));
      EXPECT_EQ(LoneTime(shape, config, ChipIndex(from), ChipIndex(to), 1), (slow ? 2 : 1) + fill);
      EXPECT_EQ(LoneTime(shape, config, ChipIndex(from), ChipIndex(to), 8),
                (slow ? 16 : 8) + fill - less);
    }
  }
}

TEST(FlitNetwork, FlitsSentAreReceivedOrInTheNetworkAfterEveryCycle) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.ToString());
    FlitConfig config = SlowZ();
    config.buffer_flits = 3;
    FlitNetwork network(shape, config, 5);
    Rng rng(5);
    std::uint64_t sent = 0;
    Load(network, rng, 500, [&] {
      ASSERT_EQ(network.CountFlits(), network.flits_in_network());
      ASSERT_EQ(network.flits_injected(), network.flits_ejected() + network.flits_in_network());
      ASSERT_GE(network.flits_injected() + network.flits_waiting(), sent);
      sent = network.flits_injected() + network.flits_waiting();
    });
    RunAll(network);
    EXPECT_EQ(network.flits_ejected(), sent);
    EXPECT_EQ(network.CountFlits(), 0u);
  }
}

TEST(FlitNetwork, NoLinkTakesMoreFlitsThanItsRate) {
  FlitNetwork network(torus::kUltraServerShape, SlowZ(), 3);
  Rng rng(3);
  std::vector<std::uint64_t> before(64 * 6, 0);
  std::vector<std::uint64_t> last(64 * 6, 0);  // cycle of the last flit
  std::uint64_t busiest_z = 0;
  Load(network, rng, 2000, [&] {
    for (LinkId link = 0; link < before.size(); ++link) {
      const std::uint64_t carried = network.flits_carried(link);
      if (carried == before[link]) continue;
      ASSERT_EQ(carried, before[link] + 1);
      const bool z = link % 6 >= 4;
      if (z && before[link] != 0) {
        ASSERT_GE(network.cycle() - last[link], 2u) << TorusLinks::Name(link);
      }
      last[link] = network.cycle();
      before[link] = carried;
      if (z) busiest_z = std::max(busiest_z, carried);
    }
  });
  EXPECT_GT(busiest_z, 300u);  // the load is high enough to matter
}

TEST(FlitNetwork, EveryPacketArrivesOnceAndWholeUnderOverload) {
  FlitNetwork network(torus::kUltraServerShape, SlowZ(), 9);
  Rng rng(9);
  std::map<std::uint64_t, std::uint64_t> left;
  for (std::uint64_t tag = 0; tag < 3000; ++tag) {
    left[tag] = 1 + rng.Below(30);  // up to four packets; the last packet may be shorter
    network.Send({.from = ChipIndex(static_cast<int>(rng.Below(64))),
                  .to = ChipIndex(static_cast<int>(rng.Below(64))),
                  .flits = left[tag],
                  .tag = tag});
  }
  while (network.busy()) {
    for (const FlitNetwork::Arrival& packet : network.Step()) {
      ASSERT_GE(left.at(packet.tag), static_cast<std::uint64_t>(packet.flits));
      left[packet.tag] -= static_cast<std::uint64_t>(packet.flits);
    }
    ASSERT_FALSE(network.deadlock());
  }
  for (const auto& [tag, flits] : left) EXPECT_EQ(flits, 0u) << tag;
}

TEST(FlitNetwork, FlitsTakeEachLinkOfTheirRouteOnceAndNoOther) {
  FlitNetwork network(torus::kUltraServerShape, SlowZ(), 1);
  std::vector<std::uint64_t> expected(64 * 6, 0);
  Rng rng(4);
  for (int i = 0; i < 300; ++i) {
    const ChipIndex from(static_cast<int>(rng.Below(64)));
    const ChipIndex to(static_cast<int>(rng.Below(64)));
    network.Send({.from = from, .to = to, .flits = 11});
    for (const torus::Hop& hop : torus::Route(torus::kUltraServerShape, from, to)) {
      expected[TorusLinks::IdOf(hop.from, hop.axis, hop.direction)] += 11;
    }
  }
  RunAll(network);
  std::uint64_t hops = 0;
  for (LinkId link = 0; link < expected.size(); ++link) {
    EXPECT_EQ(network.flits_carried(link), expected[link]) << TorusLinks::Name(link);
    hops += expected[link];
  }
  EXPECT_EQ(network.flit_hops(), hops);
}

TEST(FlitNetwork, MessagesOfOneSourceTakeTurnsPacketByPacket) {
  FlitNetwork network(kRing8, FlitConfig(), 1);
  network.Send({.from = ChipIndex(0), .to = ChipIndex(1), .flits = 24, .tag = 1});
  network.Send({.from = ChipIndex(0), .to = ChipIndex(1), .flits = 24, .tag = 2});
  std::vector<std::uint64_t> order;
  while (network.busy()) {
    for (const FlitNetwork::Arrival& packet : network.Step()) order.push_back(packet.tag);
  }
  EXPECT_THAT(order, ElementsAre(1, 2, 1, 2, 1, 2));
}

TEST(FlitNetwork, ABufferShorterThanTheRoundTripOfItsCreditsLimitsTheRate) {
  // A place is free again 7 cycles after its flit got the switch: 1 of the crossbar, 3 of the link,
  // 3 of the credit.
  for (const auto& [buffer, flits_in_seven] : {std::pair{4, 4u}, {6, 6u}, {7, 7u}, {16, 7u}}) {
    FlitConfig config;
    config.dateline = Dateline::kOff;
    config.vcs = 1;
    config.packet_flits = 7000;
    config.buffer_flits = buffer;
    const std::uint64_t cycles = LoneTime(kRing8, config, ChipIndex(0), ChipIndex(1), 7000);
    EXPECT_NEAR(static_cast<double>(cycles), 7000.0 * 7 / flits_in_seven, 20) << buffer;
  }
}

TEST(FlitNetwork, APacketBehindAnotherInAChannelWaitsForARouteAndAChannel) {
  struct Case {
    Dateline rule;
    int vcs;
    int cycles;  // for a packet of 8
  };
  // Each packet costs the cycles of its route and its channel, except when both its incoming and
  // its outgoing channel differ from the channels of the packet before.
  for (const Case& c : {Case{Dateline::kOff, 1, 10}, Case{Dateline::kChangeClass, 2, 10},
                        Case{Dateline::kOff, 2, 8}, Case{Dateline::kChangeClass, 4, 8}}) {
    FlitConfig config;
    config.dateline = c.rule;
    config.vcs = c.vcs;
    const std::uint64_t cycles = LoneTime(kRing8, config, ChipIndex(0), ChipIndex(1), 8000);
    EXPECT_NEAR(static_cast<double>(cycles), 1000 * c.cycles, 20) << c.vcs;
  }
}

// Not by flow, as max-min would: the chip's own port has packets in four channels that ask for the
// two channels of the link's first class; the link from chip 0 has packets in two.
TEST(FlitNetwork, PacketsShareALinkByTheirIncomingChannels) {
  FlitConfig config;
  config.local_port_per_link = true;
  FlitNetwork network(Shape::Of<4, 4, 1>(), config, 1);
  // The first message comes along x to chip 1, the second begins there; both go on over chip 1 y+.
  network.Send({.from = ChipIndex(0), .to = ChipIndex(5), .flits = 8000, .tag = 1});
  network.Send({.from = ChipIndex(1), .to = ChipIndex(5), .flits = 8000, .tag = 2});
  const auto arrivals = RunAll(network);
  EXPECT_NEAR(static_cast<double>(arrivals.at(2)), 12'000, 50);
  EXPECT_NEAR(static_cast<double>(arrivals.at(1)), 16'000, 50);
}

TEST(FlitNetwork, SameSeedSameTraceOtherSeedAnother) {
  const auto trace = [](std::uint64_t seed) {
    FlitNetwork network(torus::kUltraServerShape, FlitConfig::Reference(), seed);
    Rng rng(11);  // the same packets; only ties differ
    Load(network, rng, 300);
    RunAll(network);
    return network.trace_hash();
  };
  EXPECT_EQ(trace(1), trace(1));
  EXPECT_NE(trace(1), trace(2));
}

// An automorphism of the 4x4x4 torus with slower Z links: of the 4-cube made of X and Y (384) and
// of the ring of Z (8).
class Automorphism {
 public:
  explicit Automorphism(Rng& rng) : flip_(static_cast<unsigned>(rng.Below(16))) {
    for (unsigned i = 3; i > 0; --i) std::swap(bits_[i], bits_[rng.Below(i + 1)]);
    z_offset_ = static_cast<int>(rng.Below(4));
    z_sign_ = rng.Chance(1, 2) ? 1 : 3;
  }
  ChipIndex operator()(ChipIndex chip) const {
    const Coord at = torus::kUltraServerShape.CoordOf(chip);
    constexpr std::array kGray = {0u, 1u, 3u, 2u};  // the inverse of itself
    const unsigned address = kGray.at(at.x) | (kGray.at(at.y) << 2u);
    unsigned moved = flip_;
    for (unsigned i = 0; i < 4; ++i) moved ^= ((address >> i) & 1u) << bits_[i];
    return torus::kUltraServerShape.IndexOf(
        {.x = static_cast<std::uint8_t>(kGray.at(moved & 3u)),
         .y = static_cast<std::uint8_t>(kGray.at(moved >> 2u)),
         .z = static_cast<std::uint8_t>((at.z * z_sign_ + z_offset_) % 4)});
  }

 private:
  std::array<unsigned, 4> bits_ = {0, 1, 2, 3};
  unsigned flip_;
  int z_offset_ = 0;
  int z_sign_ = 1;
};

TEST(FlitNetwork, AutomorphismsOfTheTorusLeaveALonePacketsTimeUnchanged) {
  Rng rng(21);
  for (int i = 0; i < 300; ++i) {
    const Automorphism image(rng);
    const ChipIndex from(static_cast<int>(rng.Below(64)));
    const ChipIndex to(static_cast<int>(rng.Below(64)));
    EXPECT_EQ(LoneTime(torus::kUltraServerShape, SlowZ(), from, to, 16),
              LoneTime(torus::kUltraServerShape, SlowZ(), image(from), image(to), 16));
  }
}

TEST(FlitNetwork, FlowsWithoutACommonLinkTakeTheirLoneTimesUnderEveryTranslation) {
  // Every chip sends to the next chip along x, y and z: each link carries a single flow.
  const Shape shape = torus::kUltraServerShape;
  for (const int direction : {1, 3}) {
    FlitNetwork network(shape, SlowZ(), 1);
    for (int chip = 0; chip < 64; ++chip) {
      Coord to = shape.CoordOf(ChipIndex(chip));
      for (const Axis axis : torus::kAxes) to.set(axis, (to.along(axis) + direction) % 4);
      network.Send({.from = ChipIndex(chip),
                    .to = shape.IndexOf(to),
                    .flits = 200,
                    .tag = static_cast<std::uint64_t>(chip)});
    }
    const auto arrivals = RunAll(network);
    const std::uint64_t alone =
        LoneTime(shape, SlowZ(), ChipIndex(0), shape.IndexOf({1, 1, 1}), 200);
    for (const auto& [chip, cycle] : arrivals) EXPECT_EQ(cycle, alone) << "chip " << chip;
    EXPECT_EQ(arrivals.size(), 64u);
  }
}

TEST(FlitNetwork, ARingOfPacketsThatHoldAndWaitIsFoundAndNamed) {
  FlitConfig config;
  config.dateline = Dateline::kOff;
  config.vcs = 1;
  config.buffer_flits = 4;  // a packet of 8 fills its first channel and waits for the next
  FlitNetwork network(Shape::Of<5, 1, 1>(), config, 1);
  for (int chip = 0; chip < 5; ++chip) {
    network.Send({.from = ChipIndex(chip), .to = ChipIndex((chip + 2) % 5), .flits = 8});
  }
  RunAll(network);
  ASSERT_TRUE(network.deadlock());
  EXPECT_EQ(network.deadlock()->ToString(),
            fmt::format("deadlock in cycle {}: chip 0 x+ vc 0 waits for chip 1 x+ vc 0 waits for "
                        "chip 2 x+ vc 0 waits for chip 3 x+ vc 0 waits for chip 4 x+ vc 0 waits "
                        "for chip 0 x+ vc 0",
                        network.deadlock()->cycle));
  // The waits of the rings, and of the tails that have not left their chips.
  EXPECT_GE(network.deadlock()->waits.size(), 5u);
  EXPECT_GT(network.flits_in_network(), 0u);
}

// Every head waits for a held channel, but every tail can still move.
TEST(FlitNetwork, ACircleThatMovingTailsWillOpenIsNoDeadlock) {
  for (int watchdog = 9; watchdog <= 30; ++watchdog) {
    FlitConfig config;
    config.dateline = Dateline::kOff;
    config.vcs = 1;
    config.watchdog_cycles = watchdog;
    FlitNetwork network(Shape::Of<5, 1, 1>(), config, 1);
    for (int chip = 0; chip < 5; ++chip) {
      network.Send({.from = ChipIndex(chip), .to = ChipIndex((chip + 2) % 5), .flits = 8});
    }
    RunAll(network);
    EXPECT_FALSE(network.deadlock()) << network.deadlock()->ToString();
  }
}

TEST(FlitNetwork, TheSamePacketsArriveWithADateline) {
  for (const Dateline rule : {Dateline::kChangeClass, Dateline::kClassOfRing}) {
    FlitConfig config;
    config.dateline = rule;
    config.vcs = 2;
    config.buffer_flits = 4;
    FlitNetwork network(Shape::Of<5, 1, 1>(), config, 1);
    for (std::uint64_t chip = 0; chip < 5; ++chip) {
      network.Send({.from = ChipIndex(static_cast<int>(chip)),
                    .to = ChipIndex(static_cast<int>((chip + 2) % 5)),
                    .flits = 8,
                    .tag = chip});
    }
    EXPECT_EQ(RunAll(network).size(), 5u);
    EXPECT_FALSE(network.deadlock());
  }
}

// One channel of each class, and buffers shorter than a packet: as much waiting as possible.
FlitConfig Narrow(Dateline rule) {
  FlitConfig config;
  config.vcs = 2;
  config.buffer_flits = 2;
  config.dateline = rule;
  config.ties = TieRule::kByChance;
  config.watchdog_cycles = 20;  // looks often
  return config;
}

TEST(FlitNetwork, RandomTrafficAtFullLoadNeverDeadlocksWithADateline) {
  for (const Dateline rule : {Dateline::kChangeClass, Dateline::kClassOfRing}) {
    for (const Shape& shape :
         {kRing8, Shape::Of<1, 1, 16>(), torus::kInstanceShape, torus::kUltraServerShape}) {
      SCOPED_TRACE(shape.ToString());
      for (std::uint64_t seed = 1; seed <= (shape.chip_count() == 64 ? 4 : 20); ++seed) {
        FlitNetwork network(shape, Narrow(rule), seed);
        Rng rng(seed);
        Load(network, rng, 1500);
        RunAll(network);  // every sent packet arrives
        ASSERT_FALSE(network.deadlock()) << "seed " << seed << network.deadlock()->ToString();
        ASSERT_EQ(network.CountFlits(), 0u);
      }
    }
  }
}

TEST(FlitNetwork, RandomTrafficAtFullLoadDeadlocksInSomeSeedWithoutADateline) {
  for (const Shape& shape : {kRing8, torus::kInstanceShape, torus::kUltraServerShape}) {
    SCOPED_TRACE(shape.ToString());
    int deadlocks = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      FlitConfig config = Narrow(Dateline::kOff);
      config.vcs = 1;
      FlitNetwork network(shape, config, seed);
      Rng rng(seed);
      Load(network, rng, 5000);
      if (!network.deadlock()) continue;
      ++deadlocks;
      const Deadlock& found = *network.deadlock();
      ASSERT_GE(found.ring.size(), 3u);
      std::set<std::pair<int, int>> links;
      for (std::size_t i = 0; i < found.ring.size(); ++i) {
        const FlitChannel& next = found.ring[(i + 1) % found.ring.size()];
        EXPECT_TRUE(std::binary_search(found.waits.begin(), found.waits.end(),
                                       Deadlock::Wait{.holder = found.ring[i], .wanted = next}));
        EXPECT_EQ(next.port, found.ring[i].port);  // one direction of one ring
        links.emplace(next.chip, next.port);
      }
      EXPECT_EQ(links.size(), static_cast<std::size_t>(shape.extent(Axis::kX)) > 4 ? 8u : 4u);
    }
    EXPECT_GT(deadlocks, 0);
  }
}

TEST(FlitNetwork, ARingOfFourDeadlocksWithoutADatelineWhenAllTiesFallInOneDirection) {
  int deadlocks = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    FlitConfig config = Narrow(Dateline::kOff);
    config.vcs = 1;
    FlitNetwork network(Shape::Of<1, 4, 1>(), config, seed);
    for (int chip = 0; chip < 4; ++chip) {
      network.Send({.from = ChipIndex(chip), .to = ChipIndex((chip + 2) % 4), .flits = 8});
    }
    RunAll(network);
    if (!network.deadlock()) continue;
    ++deadlocks;
    EXPECT_EQ(network.deadlock()->ring.size(), 4u);
  }
  // Two of the 16 outcomes of four ties.
  EXPECT_GT(deadlocks, 200 * 2 / 16 / 2);
  EXPECT_LT(deadlocks, 200 * 2 / 16 * 2);
}

// From an even coordinate two links in plus direction, from an odd coordinate in minus direction:
// no packet waits for link 2 while it holds link 1 in the same direction, so the circle never
// closes.
TEST(FlitNetwork, TiesByParityKeepRingsOfFourFreeOfDeadlockEvenWithoutADateline) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    FlitConfig config = Narrow(Dateline::kOff);
    config.vcs = 1;
    config.ties = TieRule::kByParity;
    FlitNetwork network(torus::kUltraServerShape, config, seed);
    Rng rng(seed);
    Load(network, rng, 1500);
    RunAll(network);
    ASSERT_FALSE(network.deadlock()) << "seed " << seed;
  }
}

TEST(FlitNetwork, TheWatchdogIsSilentWhileNothingWaits) {
  FlitNetwork network(kRing8, FlitConfig(), 1);
  for (int i = 0; i < 5000; ++i) network.Step();
  EXPECT_FALSE(network.deadlock());
  network.Send({.from = ChipIndex(0), .to = ChipIndex(3), .flits = 8, .tag = 1});
  EXPECT_EQ(RunAll(network).count(1), 1u);
  EXPECT_FALSE(network.deadlock());
}

}  // namespace
}  // namespace tahoma::sim

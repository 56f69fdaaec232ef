// Tests the costs of memory, DMA start and CC-cores: the limits that memory sets, and the share of
// each cost.

#include "sim-node/emulator/collective/plan/chip_cost.h"

#include <gtest/gtest.h>

#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::MicrosecondsOf;
using testing::UltraServer;
using torus::ChipIndex;

constexpr LinkTiming kNoStartup = {.step = {}, .hop = {}};

int Touches(const ChipUse& use) { return use.reads + use.writes; }

// docs/reference/collectives.md#what-memory-allows, with the four ranks that a chip has.
TEST(ChipCostTest, NeuronsRingsTouchMemoryAsOftenAsTheirDocumentsSay) {
  const auto touches = [](Algorithm algorithm, Phase phase) {
    return Touches(collective::NeuronUse(algorithm, phase, 4));
  };
  EXPECT_EQ(touches(Algorithm::kRing, Phase::kReduceScatter), 12);
  EXPECT_EQ(touches(Algorithm::kRing, Phase::kAllGather), 8);
  EXPECT_EQ(touches(Algorithm::kKangaRing, Phase::kReduceScatter), 8);
  EXPECT_EQ(touches(Algorithm::kKangaRing, Phase::kAllGather), 6);
}

// Bytes a second that a chip sends while memory is the limit.
TEST(ChipCostTest, MemoryLimitsNeuronsRingsToTheReferencesRates) {
  const TorusLinks links = Instance(kNoStartup);
  const PlanOptions options{.costs = {.memory = true, .dma_start = false, .cc_cores = false}};
  const auto rate = [&](Algorithm algorithm, Operation operation) {
    const auto plan = PlanWith(algorithm, {.operation = operation, .bytes = kGiB},
                               MembersOf(0xffff, 4), links, options);
    EXPECT_TRUE(plan.ok()) << plan.status();
    VirtualDuration in_steps(0);
    for (const StepTimes& step : plan->times.steps) in_steps += step.end - step.departure;
    return static_cast<double>(kGiB) * 15 / 16 / Nanoseconds(in_steps);
  };
  EXPECT_NEAR(rate(Algorithm::kRing, Operation::kReduceScatter), 242, 0.5);
  EXPECT_NEAR(rate(Algorithm::kRing, Operation::kAllGather), 362.5, 0.5);
  EXPECT_NEAR(rate(Algorithm::kKangaRing, Operation::kReduceScatter), 362.5, 0.5);
  EXPECT_NEAR(rate(Algorithm::kKangaRing, Operation::kAllGather), 483.3, 0.5);
  // With a rank on each chip the links are the limit.
  const auto plan = PlanWith(Algorithm::kRing, {.operation = Operation::kAllGather, .bytes = kGiB},
                             MembersOf(0xffff), links, options);
  EXPECT_NEAR(MicrosecondsOf(*plan), static_cast<double>(kGiB) * 15 / 16 / 512e3, 1);
}

// docs/reference/collectives.md#what-memory-allows: about 5.2 ms, 62 hops included.
TEST(ChipCostTest, KangaRingTakesFivePointTwoMillisecondsForAGibibyteOn16Chips) {
  const auto plan = PlanWith(Algorithm::kKangaRing, {.bytes = kGiB}, MembersOf(0xffff, 4),
                             Instance(LinkTiming{}));
  ASSERT_TRUE(plan.ok());
  EXPECT_NEAR(MicrosecondsOf(*plan), 5200, 0.02 * 5200);
}

// Thirty steps over links, each with another hop on the chip, and two such hops in the end.
TEST(ChipCostTest, KangaRingStarts62HopsAndRingTwiceAsMany) {
  const PlanOptions options{.costs = kNoChipCosts};
  const auto time = [&](Algorithm algorithm) {
    const auto plan =
        PlanWith(algorithm, {.bytes = 64, .type = ElementType::kUint8}, MembersOf(0xffff, 4),
                 Instance({.step = Microseconds(1), .hop = {}}), options);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return MicrosecondsOf(*plan);
  };
  EXPECT_NEAR(time(Algorithm::kKangaRing), 62, 0.01);
  EXPECT_NEAR(time(Algorithm::kRing), 126, 0.01);
}

TEST(ChipCostTest, AStepStartsNoSoonerThanItsDmaEngine) {
  const LinkTiming fast{.step = Microseconds(0.2), .hop = {}};
  const LinkTiming slow{.step = Microseconds(2), .hop = {}};
  EXPECT_EQ(WorkOf(0, 1, {}, {}, fast).start, Microseconds(1.1));
  EXPECT_EQ(WorkOf(0, 1, {}, {}, slow).start, VirtualDuration(0));
  EXPECT_EQ(WorkOf(0, 1, {.starts = 2}, {}, fast).start, Microseconds(2.4));
  EXPECT_EQ(WorkOf(0, 1, {.starts = 2}, kNoChipCosts, fast).start, Microseconds(0.2));
}

TEST(ChipCostTest, SixteenCommandsAtATimeAreGiven) {
  const LinkTiming timing{.step = Microseconds(2), .hop = {}};
  const auto start = [&](int destinations, int commands) {
    return WorkOf(0, destinations, {.commands = commands}, {}, timing).start;
  };
  EXPECT_EQ(start(16, 1), VirtualDuration(0));
  EXPECT_EQ(start(17, 1), Microseconds(0.6));
  EXPECT_EQ(start(15, 4), Microseconds(1.8));
  EXPECT_EQ(start(0, 4), VirtualDuration(0));
}

TEST(ChipCostTest, AStepsMemoryWorkIsThatOfItsBusiestChip) {
  const auto send = [](int from, int to, std::uint64_t bytes) {
    return Send{.from = ChipIndex(from), .to = ChipIndex(to), .bytes = bytes};
  };
  // Chip 1 reads 3 x 290 bytes and writes 2 x 145; chip 2 copies within itself.
  const Step step = {send(1, 0, 290), send(0, 1, 145), send(2, 2, 100)};
  const ChipUse use{.reads = 3, .writes = 2};
  EXPECT_EQ(WorkOf(step, use, {}, LinkTiming{}).memory, VirtualDuration(400));
  EXPECT_EQ(WorkOf(step, use, kNoChipCosts, LinkTiming{}), StepWork{});
}

TEST(ChipCostTest, EachChipsTouchesTakeTheRateOfItsOwnBanks) {
  const auto memory = [](int banks_of_one, int banks_of_other) {
    const std::vector<Member> members = {{.chip = ChipIndex(0), .banks = banks_of_one},
                                         {.chip = ChipIndex(1), .banks = banks_of_other}};
    const Send send{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = 716'000};
    return WorkOf(std::span(&send, 1), {.reads = 3}, members, {}, LinkTiming{}).memory;
  };
  EXPECT_EQ(memory(1, 1), Microseconds(3));
  EXPECT_EQ(memory(2, 1), Microseconds(1.5));
  EXPECT_EQ(memory(3, 1), Microseconds(1));
  EXPECT_EQ(memory(4, 1), Microseconds(1)) << "chip 1 writes once";
  EXPECT_LT(memory(4, 4), Microseconds(0.75)) << "2.9 TB/s";
}

// Links are the limit of one rank on each chip, memory that of four.
TEST(ChipCostTest, FourRanksOfAChipTakeAQuarterLongerThanOne) {
  const TorusLinks links = Instance(LinkTiming{});
  const auto time = [&](int ranks) {
    return MicrosecondsOf(*PlanCollective({.bytes = kGiB}, MembersOf(0xffff, ranks), links));
  };
  EXPECT_GE(time(4), 1.25 * time(1));
}

TEST(ChipCostTest, RanksOnOneChipReadAllBuffersAndWriteAll) {
  const TorusLinks links(torus::Shape::Of<1, 1, 1>(), hw::kTrainium2.links);
  const auto plan = PlanWith(Algorithm::kRdh, {.bytes = 29 * 100'000}, MembersOf(1, 4), links);
  ASSERT_TRUE(plan.ok());
  // A DMA start before and after: first all four are read and one is written, then one is read and
  // the others are written.
  EXPECT_NEAR(MicrosecondsOf(*plan), 2 * 1.3 + 5 + 4, 0.001);
}

struct Switched {
  const char* name;
  ChipCosts costs;
};
constexpr Switched kSwitchedOff[] = {
    {"memory", {.memory = false, .dma_start = true, .cc_cores = true}},
    {"dma start", {.memory = true, .dma_start = false, .cc_cores = true}},
    {"cc cores", {.memory = true, .dma_start = true, .cc_cores = false}}};

// But for the thousandth that a choice between algorithms may leave.
TEST(ChipCostTest, ACostThatIsSwitchedOffNeverMakesAnythingSlower) {
  const TorusLinks links = UltraServer(LinkTiming{});
  for (const int ranks : {1, 4}) {
    for (const torus::ChipMask mask : {kAllChips, torus::ChipMask{0xffff}, torus::ChipMask{1}}) {
      for (const std::uint64_t bytes : {4096 * std::uint64_t{1}, 4 * kMiB, 256 * kMiB}) {
        for (const Operation operation : {Operation::kAllReduce, Operation::kAllToAll}) {
          const auto time = [&](const ChipCosts& costs) {
            const auto plan = PlanCollective({.operation = operation, .bytes = bytes},
                                             MembersOf(mask, ranks), links, {.costs = costs});
            EXPECT_TRUE(plan.ok()) << plan.status();
            return MicrosecondsOf(*plan);
          };
          const double all = time({});
          for (const Switched& one : kSwitchedOff) {
            EXPECT_LE(time(one.costs), all * 1.001) << "without " << one.name << " " << bytes;
          }
          EXPECT_LE(time(kNoChipCosts), all * 1.001);
        }
      }
    }
  }
}

TEST(ChipCostTest, EachCostHasAShareSomewhere) {
  const TorusLinks links = Instance(LinkTiming{});
  const auto time = [&](Algorithm algorithm, std::uint64_t bytes, const ChipCosts& costs) {
    return MicrosecondsOf(
        *PlanWith(algorithm, {.bytes = bytes}, MembersOf(0xffff, 4), links, {.costs = costs}));
  };
  EXPECT_LT(time(Algorithm::kKangaRing, kGiB, kSwitchedOff[0].costs),
            0.85 * time(Algorithm::kKangaRing, kGiB, {}));
  EXPECT_LT(time(Algorithm::kRdh, 4096, kSwitchedOff[1].costs),
            0.85 * time(Algorithm::kRdh, 4096, {}));
  EXPECT_NEAR(time(Algorithm::kMesh, 4096, kSwitchedOff[2].costs) + 2 * 1.8,
              time(Algorithm::kMesh, 4096, {}), 0.001);
}

}  // namespace
}  // namespace tahoma::sim

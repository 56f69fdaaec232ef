// Predictions against the emulator, the physical bound, symmetry and closed forms.

#include "lib/collective/predict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/collective/cuts.h"
#include "lib/collective/forms.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"
#include "tests/unit/lib/collective/support.h"

namespace tahoma::collective {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::ChipMask;
using torus::Direction;

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
constexpr Operation kAllOperations[] = {
    Operation::kAllReduce,   Operation::kAllGather, Operation::kReduceScatter, Operation::kAllToAll,
    Operation::kSendReceive, Operation::kPermute,   Operation::kBroadcast};
constexpr ChipMask kAll = ~ChipMask{0};

std::span<const torus::Box> AllBoxes() {
  return torus::BoxTable::Of(torus::kUltraServerShape).all();
}
// One box of each size as placed.
std::vector<torus::Box> BoxOfEachSize() {
  std::vector<torus::Box> found;
  for (const torus::Box& box : AllBoxes()) {
    if (box.origin == torus::Coord{}) found.push_back(box);
  }
  return found;
}

double Nanoseconds(Picoseconds time) { return static_cast<double>(time.count()) / 1e3; }

TEST(PredictTest, ItsCostsAreTheEmulators) {
  const LinkCosts costs;
  const sim::LinkTiming timing;
  EXPECT_EQ(costs.step, std::max(timing.step, hw::kDma.start));
  EXPECT_EQ(costs.command, hw::kMessageCosts.command);
  EXPECT_EQ(costs.hop, timing.hop);
  EXPECT_EQ(costs.efficiency_permille, timing.efficiency_permille);
}

TEST(PredictTest, WhereABoxLiesAndHowItIsTurnedMatterOnlyByItsLinks) {
  for (const torus::Box& box : AllBoxes()) {
    const int z = box.size.extent(Axis::kZ);
    for (const torus::Box& other : BoxOfEachSize()) {
      const bool same =
          other.size.chip_count() == box.size.chip_count() && other.size.extent(Axis::kZ) == z;
      if (!same) continue;
      for (const Operation operation :
           {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter,
            Operation::kAllToAll, Operation::kPermute}) {
        EXPECT_EQ(PredictCollective(box, operation, 3 * kMiB),
                  PredictCollective(other, operation, 3 * kMiB))
            << box.ToString() << " " << other.ToString();
      }
    }
  }
}

TEST(PredictTest, MoreBytesNeverTakeLess) {
  Rng rng(3);
  const DomainLinks links = UltraServer();
  for (int i = 0; i < 60; ++i) {
    const ChipMask chips =
        i % 2 == 0 ? AllBoxes()[rng.Below(AllBoxes().size())].mask : rng.Next() | rng.Next();
    for (const Operation operation : kAllOperations) {
      Picoseconds last(0);
      for (std::uint64_t bytes = 64; bytes <= kGiB; bytes = bytes * 5 / 2) {
        const auto time = PredictCollective(chips, links, operation, bytes);
        if (!time.ok()) continue;
        EXPECT_GE(*time, last) << Name(operation) << " " << bytes;
        last = *time;
      }
    }
  }
}

TEST(PredictTest, NothingIsPredictedBelowThePhysicalBound) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    DomainLinks links = UltraServer();
    for (std::uint64_t i = rng.Below(6); i > 0; --i) {
      links.SetPermille({.chip = ChipIndex(static_cast<int>(rng.Below(64))),
                         .axis = torus::kAxes.at(rng.Below(3)),
                         .direction = torus::kDirections.at(rng.Below(2)),
                         .permille = static_cast<std::uint16_t>(rng.Below(1001))});
    }
    ChipMask chips = rng.Next() | rng.Next();
    if (seed % 3 == 0) chips = AllBoxes()[rng.Below(AllBoxes().size())].mask;
    if (seed % 3 == 1) chips = rng.Next() & rng.Next() & 0xffff;
    if (chips == 0) continue;
    for (const Operation operation : kAllOperations) {
      for (const std::uint64_t bytes : {64 * kKiB, kGiB}) {
        const auto time = PredictCollective(chips, links, operation, bytes);
        if (!time.ok()) continue;
        EXPECT_GE(*time,
                  LowerBound(operation, chips, ChipIndex(std::countr_zero(chips)), bytes, links))
            << "seed " << seed << " " << Name(operation) << " " << bytes;
      }
    }
  }
}

TEST(PredictTest, ARemovedLinkCostsWhatTheMinimalCutSays) {
  for (const auto& [chips, fault] :
       {std::pair(ChipMask{0xffff},
                  LinkFault{.chip = ChipIndex(5), .axis = Axis::kX, .direction = Direction::kPlus}),
        std::pair(
            kAll,
            LinkFault{.chip = ChipIndex(21), .axis = Axis::kY, .direction = Direction::kPlus}),
        std::pair(
            kAll,
            LinkFault{.chip = ChipIndex(40), .axis = Axis::kZ, .direction = Direction::kPlus})}) {
    DomainLinks links = UltraServer();
    const Picoseconds healthy = *PredictCollective(chips, links, Operation::kAllReduce, 4 * kGiB);
    links.SetPermille(fault);
    const Picoseconds bound =
        LowerBound(Operation::kAllReduce, chips, ChipIndex(0), 4 * kGiB, links);
    const Picoseconds broken = *PredictCollective(chips, links, Operation::kAllReduce, 4 * kGiB);
    EXPECT_GT(broken, healthy);
    EXPECT_LE(Nanoseconds(broken), Nanoseconds(bound) * 1.07);
  }
}

TEST(PredictTest, FaultsOutsideOfABoxChangeNothing) {
  for (const torus::Box& box : BoxOfEachSize()) {
    Faults faults{.dead = 0, .links = {}};
    for (int chip = 0; chip < 64; ++chip) {
      if ((box.mask >> chip & 1) != 0) continue;
      faults.dead |= ChipMask{1} << chip;
    }
    for (const Operation operation : kAllOperations) {
      const auto damaged = PredictCollective(box.mask, faults, operation, kMiB);
      ASSERT_TRUE(damaged.ok()) << damaged.status();
      EXPECT_EQ(*damaged, PredictCollective(box, operation, kMiB)) << box.ToString();
    }
  }
}

TEST(PredictTest, ImpossibleQuestionsAreAnsweredWithTheReason) {
  const DomainLinks instance(torus::kInstanceShape, hw::kTrainium2.links);
  const auto message = [](const auto& answer) { return std::string(Message(answer.status())); };
  EXPECT_EQ(message(PredictCollective(0, instance, Operation::kAllReduce, kMiB)),
            "a collective needs at least one chip");
  EXPECT_EQ(message(PredictCollective(0x10001, instance, Operation::kAllReduce, kMiB)),
            "chip 16 is not in a torus of 4x4x1");
  EXPECT_EQ(message(PredictCollective(0xffff, Faults{.dead = 0x20, .links = {}},
                                      Operation::kAllReduce, kMiB)),
            "chip 5 is dead");
  DomainLinks cut = instance;
  cut.Kill(1);
  for (const Operation operation : kAllOperations) {
    const auto answer = PredictCollective(0xffff, cut, operation, kMiB);
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kFailedPrecondition) << Name(operation);
  }
}

TEST(PredictTest, SlowerLinksAndSlowerSoftwareTakeLonger) {
  const torus::Box& box = AllBoxes().back();
  const Picoseconds usual = PredictCollective(box, Operation::kAllReduce, 16 * kMiB);
  EXPECT_GT(PredictCollective(box, Operation::kAllReduce, 16 * kMiB, {.efficiency_permille = 900}),
            usual);
  LinkCosts slow;
  slow.step *= 2;
  EXPECT_GT(PredictCollective(box, Operation::kAllReduce, 16 * kMiB, slow), usual);
}

TEST(PredictTest, ARingOfTwelveComesCloseToItsBoundToo) {
  const DomainLinks links(torus::Shape::Of<12, 1, 1>(),
                          {.intra_instance = 96'000'000'000, .inter_instance = 0, .efa = 0});
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllGather, Operation::kAllToAll}) {
    const auto time = PredictCollective(0xfff, links, operation, kGiB);
    ASSERT_TRUE(time.ok()) << time.status();
    const double bound = Nanoseconds(LowerBound(operation, 0xfff, ChipIndex(0), kGiB, links));
    EXPECT_GE(Nanoseconds(*time), bound) << Name(operation);
    EXPECT_LE(Nanoseconds(*time), bound * 1.07) << Name(operation);
  }
}

// Step after step: each stripe's next one starts up when its last has arrived, and leaves when the
// links are free.
double FollowedFlow(const FlowLoad& load, const FlowCourse& course, const LinkCosts& costs) {
  const double busy =
      load.fullest * static_cast<double>(load.pieces) / static_cast<double>(course.grain);
  const double part = static_cast<double>(load.on_fastest.count()) *
                      static_cast<double>(course.grain) /
                      static_cast<double>(load.pieces * course.stripes);
  const double idle = static_cast<double>(load.idle_steps) *
                      (course.grain > load.slowness.size() ? 1 : load.slowness[course.grain - 1]);
  std::vector<double> arrived(course.stripes);
  double free = 0;
  for (double step = 0; step < busy + idle; ++step) {
    for (double& last : arrived) {
      free = std::max(free, last + static_cast<double>(costs.step.count())) + part;
      last = free + static_cast<double>(costs.hop.count());
    }
  }
  return arrived.back();
}

TEST(FlowCourseTest, NoOtherGrainIsFasterByMoreThanAStep) {
  Rng rng(5);
  const LinkCosts costs;
  for (int i = 0; i < 300; ++i) {
    FlowLoad load{.pieces = 50 + rng.Below(450),
                  .on_fastest = std::chrono::microseconds(20 + rng.Below(8000)),
                  .fullest = 0.3 + static_cast<double>(rng.Below(200)) / 100,
                  .idle_steps = 1 + rng.Below(14)};
    if (i % 3 == 0) load.slowness = {2.2, 1.3, 1.1, 1.02};
    const std::uint64_t stripes = 1 + rng.Below(4);
    const FlowCourse best = BestFlow(load, stripes, costs);
    ASSERT_EQ(best.stripes, stripes);
    const double step = static_cast<double>(load.on_fastest.count()) *
                            static_cast<double>(best.grain) / static_cast<double>(load.pieces) +
                        static_cast<double>((costs.step + costs.hop).count());
    EXPECT_NEAR(static_cast<double>(best.time.count()), FollowedFlow(load, best, costs), step) << i;
    for (std::uint64_t grain = 1; grain <= load.pieces; ++grain) {
      EXPECT_GT(FollowedFlow(load, {.grain = grain, .stripes = stripes}, costs) + step,
                static_cast<double>(best.time.count()))
          << i << " " << grain;
    }
  }
}

// Eight pieces of a step cross a link of an eighth of the highest rate in it, one takes eight.
TEST(FlowCourseTest, StepsHaveMorePiecesWhereLinksAreSlow) {
  FlowLoad load{.pieces = 500,
                .on_fastest = std::chrono::microseconds(1000),
                .fullest = 0.5,
                .idle_steps = 7};
  const FlowCourse fast = BestFlow(load, 8, LinkCosts{});
  ASSERT_EQ(fast.grain, 1U);
  load.slowness = {3.5, 2, 1.4, 1.1};
  const FlowCourse slow = BestFlow(load, 8, LinkCosts{});
  EXPECT_GT(slow.grain, 1U);
  EXPECT_GT(slow.time, fast.time);
  EXPECT_LT(slow.time, FlowTime(load, {.grain = 1, .stripes = 8}, LinkCosts{}));
}

}  // namespace
}  // namespace tahoma::collective

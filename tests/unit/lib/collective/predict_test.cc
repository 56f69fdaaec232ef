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
        EXPECT_EQ(PredictCollective(box, {.operation = operation, .bytes = 3 * kMiB}),
                  PredictCollective(other, {.operation = operation, .bytes = 3 * kMiB}))
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
        const auto time = PredictCollective(chips, links, {.operation = operation, .bytes = bytes});
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
        const auto time = PredictCollective(chips, links, {.operation = operation, .bytes = bytes});
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
    const Picoseconds healthy =
        *PredictCollective(chips, links, {.operation = Operation::kAllReduce, .bytes = 4 * kGiB});
    links.SetPermille(fault);
    const Picoseconds bound =
        LowerBound(Operation::kAllReduce, chips, ChipIndex(0), 4 * kGiB, links);
    const Picoseconds broken =
        *PredictCollective(chips, links, {.operation = Operation::kAllReduce, .bytes = 4 * kGiB});
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
      const auto damaged =
          PredictCollective(box.mask, faults, {.operation = operation, .bytes = kMiB});
      ASSERT_TRUE(damaged.ok()) << damaged.status();
      EXPECT_EQ(*damaged, PredictCollective(box, {.operation = operation, .bytes = kMiB}))
          << box.ToString();
    }
  }
}

TEST(PredictTest, ImpossibleQuestionsAreAnsweredWithTheReason) {
  const DomainLinks instance(torus::kInstanceShape, hw::kTrainium2.links);
  const auto message = [](const auto& answer) { return std::string(Message(answer.status())); };
  EXPECT_EQ(
      message(PredictCollective(0, instance, {.operation = Operation::kAllReduce, .bytes = kMiB})),
      "a collective needs at least one chip");
  EXPECT_EQ(message(PredictCollective(0x10001, instance,
                                      {.operation = Operation::kAllReduce, .bytes = kMiB})),
            "chip 16 is not in a torus of 4x4x1");
  EXPECT_EQ(message(PredictCollective(0xffff, Faults{.dead = 0x20, .links = {}}, {.bytes = kMiB})),
            "chip 5 is dead");
  DomainLinks cut = instance;
  cut.Kill(1);
  for (const Operation operation : kAllOperations) {
    const auto answer = PredictCollective(0xffff, cut, {.operation = operation, .bytes = kMiB});
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kFailedPrecondition) << Name(operation);
  }
}

TEST(PredictTest, SlowerLinksAndSlowerSoftwareTakeLonger) {
  const FormRequest request{.operation = Operation::kAllReduce, .bytes = 16 * kMiB};
  const auto time = [&](const LinkCosts& costs) {
    const DomainLinks links(torus::kUltraServerShape, hw::kTrainium2.links, costs);
    return *PredictCollective(kAll, links, request);
  };
  EXPECT_GT(time({.efficiency_permille = 900}), time({}));
  LinkCosts slow;
  slow.step *= 2;
  EXPECT_GT(time(slow), time({}));
}

TEST(PredictTest, ChipsOfEachModelHaveTheirOwnRatesAndMemory) {
  const FormRequest request{.operation = Operation::kAllReduce, .bytes = kGiB};
  const torus::Box& box =
      torus::BoxTable::Of(torus::kInstanceShape).Rotations(torus::kInstanceShape).front();
  const double trn2 = Nanoseconds(PredictCollective(box, request, hw::kTrainium2));
  const double trn1 = Nanoseconds(PredictCollective(box, request, hw::kTrainium1));
  const double trn1n = Nanoseconds(PredictCollective(box, request, hw::kTrainium1N));
  EXPECT_NEAR(trn1 / trn2, 128.0 / 48, 0.05);
  // The memory of Trainium1 does not keep up with the links of Trainium1N.
  EXPECT_GE(trn1n / trn2, 128.0 / 96);
  EXPECT_LE(trn1n, trn1);
  // Two ranks on a chip read and write memory at 820 GB/s, where one is bound by links.
  const FormRequest two{.operation = Operation::kAllReduce, .bytes = kGiB, .ranks = 2};
  EXPECT_GT(Nanoseconds(PredictCollective(box, two, hw::kTrainium1)), trn1 * 1.2);
}

TEST(PredictTest, ARingOfTwelveComesCloseToItsBoundToo) {
  const DomainLinks links(torus::Shape::Of<12, 1, 1>(), hw::kInferentia2);
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllGather, Operation::kAllToAll}) {
    const auto time = PredictCollective(0xfff, links, {.operation = operation, .bytes = kGiB});
    ASSERT_TRUE(time.ok()) << time.status();
    const double bound = Nanoseconds(LowerBound(operation, 0xfff, ChipIndex(0), kGiB, links));
    EXPECT_GE(Nanoseconds(*time), bound) << Name(operation);
    EXPECT_LE(Nanoseconds(*time), bound * 1.07) << Name(operation);
  }
}

}  // namespace
}  // namespace tahoma::collective

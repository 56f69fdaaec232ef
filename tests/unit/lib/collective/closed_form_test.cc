// The closed form against the emulator's plans, timed message by message, over random sets.
//
//   collective_test --gtest_filter='ClosedForm*'                        # a fixed seed, quick
//   collective_test --gtest_filter='ClosedForm*' --gtest_random_seed=N  # another one, thousands

#include "lib/collective/closed_form.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"
#include "sim-node/emulator/collective/plan/plan.h"

namespace tahoma::collective {
namespace {

using torus::ChipIndex;
using torus::ChipMask;

struct Seed {
  std::uint64_t seed = 1;
  int cases = 0;
};
// `quick` cases with a fixed seed, or thousands with the one that is asked for.
Seed SeedOf(int quick) {
  const int asked = GTEST_FLAG_GET(random_seed);
  return asked == 0 ? Seed{.seed = 1, .cases = quick}
                    : Seed{.seed = static_cast<std::uint64_t>(asked), .cases = 4000};
}

const hw::ChipModel& ModelOf(std::uint64_t number) {
  if (number == 0) return hw::kTrainium1;
  return number == 1 ? hw::kTrainium1N : hw::kTrainium2;
}

struct Case {
  Case(Rng& rng, const hw::ChipModel& chip, const torus::Shape& torus)
      : links(torus, chip),
        ranks(std::min(static_cast<int>(std::uint64_t{1} << rng.Below(4)), chip.physical_cores)),
        operation(static_cast<Operation>(rng.Below(kOperations))) {
    bytes =
        static_cast<std::uint64_t>(std::exp2(2 + 28 * static_cast<double>(rng.Below(1000)) / 1000));
    // Half of the cases take part with whole chips.
    if (rng.Below(2) == 0) banks = 1 + static_cast<int>(rng.Below(hw::kHbmBanksMax));
  }

  static Case Random(Rng& rng) {
    const hw::ChipModel& chip = ModelOf(rng.Below(4));
    const bool ultra = chip.links.inter_instance > 0 && rng.Below(2) == 0;
    return {rng, chip, ultra ? torus::kUltraServerShape : torus::kInstanceShape};
  }
  void TakeBox(Rng& rng) {
    const auto boxes = torus::BoxTable::Of(links.torus()).all();
    chips = boxes[rng.Below(boxes.size())].mask;
  }
  void TakeAnyChips(Rng& rng) {
    const auto all = static_cast<std::uint64_t>(links.torus().chip_count());
    const auto wanted = static_cast<int>(2 + rng.Below(all - 1));
    const Topology topology(links.torus());
    chips = ChipMask{1} << rng.Below(all);
    while (std::popcount(chips) < wanted) {
      const std::uint64_t chip = rng.Below(all);
      if ((topology.neighbours.at(chip) & chips) != 0) chips |= ChipMask{1} << chip;
    }
  }
  void BreakCables(Rng& rng) {
    for (std::uint64_t i = 1 + rng.Below(6); i > 0; --i) {
      const auto all = static_cast<std::uint64_t>(links.torus().chip_count());
      const auto link =
          sim::TorusLinks::IdOf(ChipIndex(static_cast<int>(rng.Below(all))),
                                torus::kAxes.at(rng.Below(3)), torus::kDirections.at(rng.Below(2)));
      const auto permille = static_cast<std::uint16_t>(rng.Below(4) * 250);
      if (!links.Exists(link)) continue;
      EXPECT_TRUE(links.SetCablePermille(link, permille).ok());
    }
  }

  // The form's time over the plan's, less 1. 0 when links that are down cut chips off.
  double Error() const {
    // At least an element for each rank.
    const std::uint64_t all = std::uint64_t{4} * static_cast<std::uint64_t>(ranks) *
                              static_cast<std::uint64_t>(std::popcount(chips));
    const std::uint64_t whole = std::max(bytes / 4 * 4, all);
    const auto plan =
        sim::PlanCollective({.operation = operation, .bytes = whole}, Members(), links);
    const DomainLinks rates = sim::DomainLinksOf(links, {});
    const SetLoads loads(chips, rates, ChipIndex(std::countr_zero(chips)));
    const Picoseconds time = FormTime({.operation = operation,
                                       .bytes = whole,
                                       .ranks = ranks,
                                       .banks = banks,
                                       .element_bytes = 4},
                                      loads, rates.costs());
    if (!plan.ok()) {
      EXPECT_EQ(time, Picoseconds::max()) << ToString();
      return 0;
    }
    const Picoseconds timed = plan->times.end - plan->times.start;
    if (timed == time) return 0;
    return static_cast<double>(time.count()) / static_cast<double>(timed.count()) - 1;
  }
  std::vector<sim::Member> Members() const {
    std::vector<sim::Member> members = sim::MembersOf(chips, ranks);
    for (sim::Member& member : members) member.banks = banks;
    return members;
  }
  std::string ToString() const {
    return fmt::format("{} of {} bytes on {:#x} of {}, {} ranks, {} banks, {}", Name(operation),
                       bytes, chips, links.torus().ToString(), ranks, banks, links.chip().name);
  }

  sim::TorusLinks links;
  ChipMask chips = 0;
  int ranks;
  int banks = hw::kHbmBanksMax;
  Operation operation;
  std::uint64_t bytes;
};

TEST(ClosedFormTest, OnHealthySubcubesItIsThePlansTimeWithinTwoPercent) {
  const Seed seed = SeedOf(600);
  Rng rng(seed.seed);
  for (int i = 0; i < seed.cases; ++i) {
    Case one = Case::Random(rng);
    one.TakeBox(rng);
    EXPECT_NEAR(one.Error(), 0, 0.02) << one.ToString();
  }
}

TEST(ClosedFormTest, OnOtherHealthySetsItIsThePlansTimeWithinTenPercent) {
  const Seed seed = SeedOf(60);
  Rng rng(seed.seed);
  for (int i = 0; i < seed.cases; ++i) {
    Case one = Case::Random(rng);
    one.TakeAnyChips(rng);
    EXPECT_NEAR(one.Error(), 0, 0.10) << one.ToString();
  }
}

TEST(ClosedFormTest, AroundBrokenCablesItIsThePlansTimeWithinTenPercent) {
  const Seed seed = SeedOf(60);
  Rng rng(seed.seed);
  for (int i = 0; i < seed.cases; ++i) {
    Case one = Case::Random(rng);
    if (i % 2 == 0) one.TakeBox(rng);
    if (i % 2 == 1) one.TakeAnyChips(rng);
    one.BreakCables(rng);
    EXPECT_NEAR(one.Error(), 0, 0.10) << one.ToString();
  }
}

// The emulator chooses between the algorithms by these times.
TEST(ClosedFormTest, APhaseOfAnAlgorithmHasTheTimeOfItsPlanOnEveryBoxAtTheCorner) {
  constexpr int kRanks = 4;
  const sim::TorusLinks links(torus::kUltraServerShape, hw::kTrainium2);
  const DomainLinks rates = sim::DomainLinksOf(links);
  for (const torus::Box& box : torus::BoxTable::Of(links.torus()).all()) {
    if (box.origin != torus::Coord{} || box.size.chip_count() == 1) continue;
    const SetLoads loads(box.mask, rates, ChipIndex(0));
    for (const Algorithm algorithm : kAllAlgorithms) {
      if (algorithm == Algorithm::kTree) continue;
      for (const Phase phase : {Phase::kReduceScatter, Phase::kAllGather}) {
        for (const std::uint64_t bytes : {std::uint64_t{1} << 16, std::uint64_t{1} << 28}) {
          const Operation operation = OperationOf(phase);
          const auto plan = sim::PlanWith(algorithm, {.operation = operation, .bytes = bytes},
                                          sim::MembersOf(box.mask, kRanks), links);
          ASSERT_TRUE(plan.ok()) << plan.status();
          const auto time = static_cast<double>(
              PhaseTime(algorithm, phase, {.operation = operation, .bytes = bytes, .ranks = kRanks},
                        loads, rates.costs())
                  .count());
          EXPECT_NEAR(static_cast<double>((plan->times.end - plan->times.start).count()), time,
                      time * 2e-3)
              << Name(algorithm) << ", " << Name(operation) << " on " << box.ToString();
        }
      }
    }
  }
}

}  // namespace
}  // namespace tahoma::collective

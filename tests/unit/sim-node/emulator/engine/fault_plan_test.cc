#include "sim-node/emulator/engine/fault_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace tahoma::sim {
namespace {

constexpr FaultPlan::Choice kChoice = {.targets = 384, .count = 50, .horizon = Microseconds(100)};

TEST(FaultPlanTest, TheSameSeedGivesTheSamePlanAndAnotherSeedAnother) {
  Rng a(7), b(7), c(8);
  const FaultPlan plan = FaultPlan::Draw(a, kChoice);
  const FaultPlan same = FaultPlan::Draw(b, kChoice);
  const FaultPlan other = FaultPlan::Draw(c, kChoice);
  EXPECT_EQ(plan.faults(), same.faults());
  EXPECT_NE(plan.faults(), other.faults());
}

TEST(FaultPlanTest, FaultsAreInOrderOfTimeAndInsideTheHorizon) {
  Rng rng(1);
  VirtualTime last{};
  const FaultPlan plan = FaultPlan::Draw(rng, kChoice);
  for (const Fault& fault : plan.faults()) {
    EXPECT_GE(fault.at, last);
    EXPECT_LT(fault.at, VirtualTime(kChoice.horizon));
    EXPECT_LT(fault.target, kChoice.targets);
    EXPECT_LE(fault.permille, 1000);
    last = fault.at;
  }
}

TEST(FaultPlanTest, EveryFaultIsRepairedWhenAsked) {
  Rng rng(2);
  std::map<std::uint32_t, int> open;
  const FaultPlan plan = FaultPlan::Draw(rng, kChoice);
  for (const Fault& fault : plan.faults()) {
    open[fault.target] += fault.permille == 1000 ? -1 : 1;
  }
  for (const auto& [target, count] : open) EXPECT_EQ(count, 0) << "target " << target;
}

TEST(FaultPlanTest, AFlappingTargetGoesDownEachPeriodAndUpInBetweenUntilTheEnd) {
  const auto at = [](double microseconds) { return VirtualTime(Microseconds(microseconds)); };
  const FaultPlan plan = FaultPlan::Flapping({.target = 3,
                                              .from = at(5),
                                              .until = at(25),
                                              .period = Microseconds(10),
                                              .down = Microseconds(2),
                                              .up_permille = 500});
  EXPECT_EQ(plan.faults(),
            (std::vector<Fault>{{at(5), 3, 0}, {at(7), 3, 500}, {at(15), 3, 0}, {at(17), 3, 500}}));
}

TEST(FaultPlanTest, TwoPlansInOneAreInOrderOfTime) {
  const auto flap = [](std::uint32_t target, double from) {
    return FaultPlan::Flapping({.target = target,
                                .from = VirtualTime(Microseconds(from)),
                                .until = VirtualTime(Microseconds(100)),
                                .period = Microseconds(20),
                                .down = Microseconds(5)});
  };
  const FaultPlan one = flap(1, 0), other = flap(2, 3);
  const FaultPlan both = one.And(other);
  EXPECT_EQ(both.faults().size(), one.faults().size() + other.faults().size());
  EXPECT_TRUE(std::is_sorted(both.faults().begin(), both.faults().end(),
                             [](const Fault& a, const Fault& b) { return a.at < b.at; }));
}

TEST(FaultPlanTest, APlanOfNoFaultsIsEmpty) {
  Rng rng(3);
  const FaultPlan plan = FaultPlan::Draw(rng, {});
  EXPECT_TRUE(plan.faults().empty());
}

}  // namespace
}  // namespace tahoma::sim

#include "sim-node/engine/fault_plan.h"

#include <gtest/gtest.h>

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

TEST(FaultPlanTest, APlanOfNoFaultsIsEmpty) {
  Rng rng(3);
  const FaultPlan plan = FaultPlan::Draw(rng, {});
  EXPECT_TRUE(plan.faults().empty());
}

}  // namespace
}  // namespace tahoma::sim

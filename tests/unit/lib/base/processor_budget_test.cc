#include "lib/base/processor_budget.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace tahoma {
namespace {

using std::chrono::seconds;

class ProcessorBudgetTest : public ::testing::Test {
 protected:
  // Spends single steps until the budget is exceeded, or `most` are spent.
  static int StepsUntilExceeded(int most = 1'000'000) {
    for (int i = 0; i < most; ++i) {
      try {
        ProcessorBudget::Spend();
      } catch (const ProcessorBudget::Exceeded&) {
        return i;
      }
    }
    return most;
  }

  std::chrono::nanoseconds time_{seconds(100)};
  int looks_ = 0;
  const ProcessorBudget::Now now_ = [this] {
    ++looks_;
    return time_;
  };
};

TEST_F(ProcessorBudgetTest, TimeCountsFromTheStartAndIsLookedAtSeldom) {
  const ProcessorBudget budget(seconds(10), now_);
  EXPECT_EQ(StepsUntilExceeded(10'000), 10'000);
  EXPECT_LE(looks_, 12);
  time_ += seconds(10);
  EXPECT_EQ(StepsUntilExceeded(10'000), 10'000) << "all of it may be used";
  time_ += std::chrono::nanoseconds(1);
  EXPECT_LE(StepsUntilExceeded(), 1000);
}

TEST_F(ProcessorBudgetTest, AnExceededBudgetStaysSo) {
  const ProcessorBudget budget(seconds(10), now_);
  time_ += seconds(11);
  for (int i = 0; i < 3; ++i) EXPECT_LE(StepsUntilExceeded(), 1000);
}

TEST_F(ProcessorBudgetTest, ALargeSpendChecksTheTimeAtOnce) {
  const ProcessorBudget budget(seconds(10), now_);
  time_ += seconds(11);
  EXPECT_THROW(ProcessorBudget::Spend(1'000'000), ProcessorBudget::Exceeded);
  EXPECT_THROW(ProcessorBudget::SpendBytes(10'000'000), ProcessorBudget::Exceeded);
  try {
    ProcessorBudget::Spend(1'000'000);
  } catch (const ProcessorBudget::Exceeded& exceeded) {
    EXPECT_EQ(exceeded.limit(), seconds(10));
  }
}

TEST_F(ProcessorBudgetTest, ABudgetBelongsToItsThreadAndItsScope) {
  EXPECT_EQ(StepsUntilExceeded(5000), 5000) << "nobody has a budget";
  {
    const ProcessorBudget outer(seconds(100), now_);
    {
      const ProcessorBudget inner(seconds(10), now_);
      time_ += seconds(11);
      int elsewhere = 0;
      std::thread([&] { elsewhere = StepsUntilExceeded(5000); }).join();
      EXPECT_EQ(elsewhere, 5000);
      EXPECT_LE(StepsUntilExceeded(), 1000);
    }
    EXPECT_EQ(StepsUntilExceeded(5000), 5000) << "the outer one counts again";
    time_ += seconds(100);
    EXPECT_LE(StepsUntilExceeded(), 1000);
  }
  EXPECT_EQ(StepsUntilExceeded(5000), 5000);
}

TEST_F(ProcessorBudgetTest, WorkAfterLiftIsNotCounted) {
  const ProcessorBudget outer(seconds(100), now_);
  {
    const ProcessorBudget inner(seconds(10), now_);
    ProcessorBudget::Lift();
    time_ += seconds(1000);
    EXPECT_EQ(StepsUntilExceeded(5000), 5000);
  }
  EXPECT_LE(StepsUntilExceeded(), 1000);
}

TEST(ThreadProcessorTimeTest, GrowsWithTheWorkOfThisThreadOnly) {
  const auto start = ThreadProcessorTime();
  volatile std::uint64_t sum = 0;
  while (ThreadProcessorTime() - start < std::chrono::milliseconds(5)) sum = sum + 1;
  std::chrono::nanoseconds elsewhere{};
  std::thread([&] { elsewhere = ThreadProcessorTime(); }).join();
  EXPECT_LT(elsewhere, std::chrono::milliseconds(5));
}

}  // namespace
}  // namespace tahoma

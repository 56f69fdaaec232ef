#include "lib/base/byte_budget.h"

#include <gtest/gtest.h>

namespace tahoma {
namespace {

TEST(ByteBudgetTest, HeldBytesAreBoundedUntilReturned) {
  ByteBudget budget(100);
  ByteBudget::Hold first = budget.Acquire(60);
  const ByteBudget::Hold second = budget.Acquire(40);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(budget.Acquire(1), nullptr);
  ByteBudget::Hold copy = first;
  first.reset();
  EXPECT_EQ(budget.held(), 100U) << "the copy holds it";
  copy.reset();
  EXPECT_EQ(budget.held(), 40U);
  EXPECT_NE(budget.Acquire(60), nullptr);
}

TEST(ByteBudgetTest, WhoFindsNothingHeldGetsAsMuchAsHeWants) {
  ByteBudget budget(100);
  const ByteBudget::Hold large = budget.Acquire(1000);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(budget.Acquire(1), nullptr);
  EXPECT_EQ(budget.Acquire(SIZE_MAX), nullptr);
}

}  // namespace
}  // namespace tahoma

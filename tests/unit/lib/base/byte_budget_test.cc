#include "lib/base/byte_budget.h"

#include <gtest/gtest.h>

namespace tahoma {
namespace {

TEST(ByteBudgetTest, HeldBytesAreBoundedUntilReturned) {
  ByteBudget budget(100);
  ByteBudget::Hold first = budget.Take(60);
  const ByteBudget::Hold second = budget.Take(40);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(budget.Take(1), nullptr);
  ByteBudget::Hold copy = first;
  first.reset();
  EXPECT_EQ(budget.held(), 100U) << "the copy holds it";
  copy.reset();
  EXPECT_EQ(budget.held(), 40U);
  EXPECT_NE(budget.Take(60), nullptr);
}

TEST(ByteBudgetTest, WhoFindsNothingHeldGetsAsMuchAsHeWants) {
  ByteBudget budget(100);
  const ByteBudget::Hold large = budget.Take(1000);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(budget.Take(1), nullptr);
  EXPECT_EQ(budget.Take(SIZE_MAX), nullptr);
}

}  // namespace
}  // namespace tahoma

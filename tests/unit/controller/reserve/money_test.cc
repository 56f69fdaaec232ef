// Fees are exact to the cent, against two answers that EC2 has given.

#include "controller/reserve/money.h"

#include <gtest/gtest.h>

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

// docs/reference/capacity-blocks.md#prices: trn2.48xlarge for 24 h, for 8 h 37 and for 32 h 37.
TEST(MoneyTest, FeesAreThoseOfEc2) {
  const Money rate = *ParseMoney("35.7608");
  EXPECT_EQ(Fee(rate, 1, hours(24)).ToString(), "858.26");
  EXPECT_EQ(Fee(rate, 1, hours(8) + minutes(37)).ToString(), "308.14");
  EXPECT_EQ(Fee(rate, 1, hours(32) + minutes(37)).ToString(), "1166.40");
  EXPECT_EQ(Fee(rate, 16, hours(168)).ToString(), "96125.03");
}

TEST(MoneyTest, TheFeeOfSeveralHostsIsRoundedOnce) {
  const Money rate = *ParseMoney("0.000001");
  EXPECT_EQ(Fee(rate, 1, minutes(29)).millionths, 0);
  EXPECT_EQ(Fee(rate, 60, minutes(29)).millionths, 29);
}

TEST(MoneyTest, TheLargestFeeDoesNotOverflow) {
  const Money fee = Fee(*ParseMoney("1000"), 1'000'000, hours(24) * 182);
  EXPECT_EQ(fee.ToString(), "4368000000000.00");
}

TEST(MoneyTest, TextIsReadAndWrittenExactly) {
  for (const char* text : {"0.00", "35.7608", "0.000001", "1000000000.00", "12.30"}) {
    EXPECT_EQ(ParseMoney(text)->ToExactString(), text);
  }
  EXPECT_EQ(ParseMoney("7")->ToExactString(), "7.00");
  EXPECT_EQ(Money{1'005'000}.ToString(), "1.01");
  EXPECT_EQ(Money{-1'005'000}.ToString(), "-1.01");
  EXPECT_EQ(Money{4'999}.ToString(), "0.00");
}

TEST(MoneyTest, AMalformedAmountIsRefused) {
  for (const char* text : {"", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", "1.0000001", "1000000001",
                           "99999999999999999999", " 1", "0x1"}) {
    EXPECT_FALSE(ParseMoney(text).ok()) << text;
  }
}

}  // namespace
}  // namespace tahoma::controller

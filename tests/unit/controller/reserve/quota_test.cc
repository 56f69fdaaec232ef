// An owner has no more instances on any date, and on average, than allowed.

#include "controller/reserve/quota.h"

#include <gtest/gtest.h>

#include "controller/reserve/refusal.h"

namespace tahoma::controller {
namespace {

constexpr Slot kToday = 20'000;

TEST(QuotaTest, AnOwnerMayHave256InstancesOnAnyDate) {
  QuotaTable quotas(kToday);
  quotas.Add("a", {kToday, kToday + 7}, 200);
  EXPECT_TRUE(quotas.Check("a", {kToday + 6, kToday + 9}, 56).ok());
  EXPECT_TRUE(quotas.Check("a", {kToday + 7, kToday + 9}, 256).ok());
  EXPECT_TRUE(quotas.Check("b", {kToday, kToday + 9}, 256).ok());
  const absl::Status refused = quotas.Check("a", {kToday + 6, kToday + 9}, 57);
  EXPECT_EQ(Ec2CodeOf(refused), "InstanceLimitExceeded");
  EXPECT_EQ(refused.message(),
            "57 instances beside the 200 that the blocks of a have then are more than the 256 that "
            "are allowed on any date");
}

TEST(QuotaTest, InstancesGivenBackMayBeBoughtAgain) {
  QuotaTable quotas(kToday);
  quotas.Set("a", Quota{.instances = 4});
  quotas.Add("a", {kToday, kToday + 7}, 4);
  EXPECT_FALSE(quotas.Check("a", {kToday, kToday + 1}, 1).ok());
  quotas.Add("a", {kToday, kToday + 7}, -4);
  EXPECT_TRUE(quotas.Check("a", {kToday, kToday + 1}, 4).ok());
  quotas.Set("a", std::nullopt);
  EXPECT_TRUE(quotas.Check("a", {kToday, kToday + 1}, 256).ok());
}

TEST(QuotaTest, DaysThatHavePassedCountNoMore) {
  QuotaTable quotas(kToday);
  quotas.Set("a", Quota{.instances = 4});
  quotas.Add("a", {kToday, kToday + 2}, 4);
  quotas.AdvanceTo(kToday + 2);
  // The places in the ring of the days that have passed are those of days to come.
  EXPECT_EQ(quotas.Most("a", {kToday + 2, kToday + 2 + kSlotsAhead}), 0);
  quotas.AdvanceTo(kToday + 10'000);
  quotas.Add("a", {kToday, kToday + 10'001}, 3);
  EXPECT_EQ(quotas.Most("a", {kToday + 10'000, kToday + 10'001}), 3);
}

TEST(QuotaTest, AnAverageAllowsMuchForShortAndLittleForLong) {
  QuotaTable quotas(kToday);
  quotas.Set("a", Quota{.instances = 64, .average = 16, .window_days = 28});
  EXPECT_TRUE(quotas.Check("a", {kToday, kToday + 7}, 64).ok());   // 448 of 448 instance-days
  EXPECT_FALSE(quotas.Check("a", {kToday, kToday + 8}, 64).ok());  // 512
  EXPECT_TRUE(quotas.Check("a", {kToday, kToday + 182}, 16).ok());
  quotas.Add("a", {kToday, kToday + 7}, 64);
  EXPECT_FALSE(quotas.Check("a", {kToday + 14, kToday + 15}, 1).ok());  // in one window of both
  EXPECT_TRUE(quotas.Check("a", {kToday + 28, kToday + 35}, 64).ok());
}

TEST(QuotaTest, TheUseIsThatOfTodayAndLater) {
  QuotaTable quotas(kToday);
  EXPECT_EQ(quotas.UseOf("a"), QuotaUse{});
  const Quota quota{.instances = 8, .average = 4, .window_days = 7};
  quotas.Set("a", quota);
  quotas.Add("a", {kToday, kToday + 2}, 4);
  quotas.Add("a", {kToday + 1, kToday + 3}, 8);
  EXPECT_EQ(quotas.UseOf("a"), (QuotaUse{.limits = quota,
                                         .today = 4,
                                         .peak = 12,
                                         .peak_at = StartOf(kToday + 1),
                                         .instance_days = 24}));
  EXPECT_TRUE(quotas.UseOf("a").over());
  EXPECT_FALSE(quotas.UseOf("a").over_average());  // 24 of 28
  quotas.Add("a", {kToday + 5, kToday + 6}, 5);
  EXPECT_TRUE(quotas.UseOf("a").over_average());
  quotas.AdvanceTo(kToday + 3);
  EXPECT_EQ(quotas.UseOf("a").peak, 5);
  EXPECT_EQ(quotas.UseOf("a").peak_at, StartOf(kToday + 5));
  EXPECT_EQ(quotas.UseOf("a").today, 0);
}

}  // namespace
}  // namespace tahoma::controller

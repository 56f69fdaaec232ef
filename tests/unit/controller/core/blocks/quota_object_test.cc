// CapacityBlockQuotas: what they allow, what they show, and that they take nothing back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/controller/core/request_world.h"

namespace tahoma::controller {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kQuotas[] = "capacityblockquotas";

class QuotaObjectTest : public ::testing::Test {
 protected:
  QuotaObjectTest() { world.Settle(); }

  void Set(const Json& spec) {
    world.Apply(kQuotas, "", "team-a", spec);
    world.Settle();
  }
  Json Status() const { return world.Status(kQuotas, "", "team-a"); }
  std::string Order(const std::string& name, int days = 1) {
    world.Apply(kBlocks, "team-a", name, {{"capacityBlockOfferingId", world.Offering(days)}});
    world.Settle();
    return world.Status(kBlocks, "team-a", name).value("reason", "");
  }

  RequestWorld world{4};
};

TEST_F(QuotaObjectTest, ANamespaceGetsNoMoreThanItsQuotaAllows) {
  Set({{"instances", 4}});
  EXPECT_EQ(Order("first"), "");
  EXPECT_EQ(Order("second"), "InstanceLimitExceeded");
  EXPECT_EQ(Status().at("state"), "WithinLimits");
  EXPECT_EQ(Status().at("peakInstances"), 4);
  EXPECT_EQ(Status().at("peakDate"), FormatTime(world.BlockOf("first").start()));
  EXPECT_EQ(Status().at("instancesToday"), 0);
  world.MoveTo(world.BlockOf("first").start());
  EXPECT_EQ(Status().at("instancesToday"), 4);
  world.MoveTo(world.BlockOf("first").end);
  EXPECT_EQ(Status().at("instancesToday"), 0);
  EXPECT_EQ(Status().at("peakInstances"), 0);
  EXPECT_FALSE(Status().contains("peakDate"));
}

TEST_F(QuotaObjectTest, ASmallerQuotaTakesNothingThatIsSold) {
  EXPECT_EQ(Order("first"), "");
  EXPECT_EQ(Order("second"), "");
  Set({{"instances", 4}});
  EXPECT_EQ(Status().at("state"), "Exceeded");
  EXPECT_THAT(Status().at("message").get<std::string>(),
              HasSubstr("have 8 instances on 2026-11-23, more than the 4"));
  EXPECT_THAT(world.events, Contains("CapacityBlockQuota team-a: QuotaExceeded"));
  world.MoveTo(world.BlockOf("first").start());
  EXPECT_EQ(world.State(kBlocks, "first"), "active");
  EXPECT_EQ(world.State(kBlocks, "second"), "active");
  world.EditSpec(kQuotas, "", "team-a", {{"instances", 8}});
  world.Settle();
  EXPECT_EQ(Status().at("state"), "WithinLimits");
  EXPECT_EQ(Status().at("observedGeneration"), 2);
  EXPECT_FALSE(Status().contains("message"));
}

TEST_F(QuotaObjectTest, AnAverageLimitsLongBlocks) {
  Set({{"averageInstances", 1}, {"averageWindowDays", 7}});
  EXPECT_EQ(Order("day"), "");  // four instance-days of seven
  EXPECT_EQ(Status().at("instanceDays"), 4);
  EXPECT_EQ(Order("more"), "InstanceLimitExceeded");
  EXPECT_EQ(Status().at("limits").at("averageInstances"), 1);
}

TEST_F(QuotaObjectTest, WithoutTheObjectTheQuotaIsThatOfEc2) {
  Set({{"instances", 0}});
  EXPECT_EQ(Order("first"), "InstanceLimitExceeded");
  world.Delete(kQuotas, "", "team-a");
  world.Settle();
  EXPECT_EQ(Order("second"), "");
}

// A controller that begins hears of blocks to buy and of quotas together.
TEST_F(QuotaObjectTest, AQuotaIsKnownBeforeAnythingIsBought) {
  const std::string offering = world.Offering();
  world.Apply(kBlocks, "team-a", "first", {{"capacityBlockOfferingId", offering}});
  world.Apply(kQuotas, "", "team-a", {{"instances", 0}});
  world.Start();
  world.Settle();
  EXPECT_EQ(world.Status(kBlocks, "team-a", "first").value("reason", ""), "InstanceLimitExceeded");
}

TEST_F(QuotaObjectTest, AnExtensionIsCheckedToo) {
  Set({{"averageInstances", 1}, {"averageWindowDays", 7}});
  EXPECT_EQ(Order("day"), "");
  world.Apply("capacityblockextensions", "team-a", "more",
              {{"capacityBlockName", "day"}, {"capacityBlockExtensionDurationHours", 24}});
  world.Settle();
  EXPECT_EQ(world.Status("capacityblockextensions", "team-a", "more").value("reason", ""),
            "InstanceLimitExceeded");
}

TEST_F(QuotaObjectTest, AQuotaThatCannotBeReadChangesNothing) {
  Set({{"instances", 4}});
  world.EditSpec(kQuotas, "", "team-a", {{"instances", -1}});
  world.Settle();
  EXPECT_EQ(Status().at("reason"), "InvalidParameterValue");
  EXPECT_EQ(Status().at("message"), "spec.instances: is -1, must be 0 to 1000000");
  EXPECT_EQ(Order("first"), "");
  EXPECT_EQ(Order("second"), "InstanceLimitExceeded");
}

TEST_F(QuotaObjectTest, NothingIsWrittenWhenNothingChanges) {
  Set({{"instances", 4}});
  const int writes = world.status_writes;
  world.Replay();
  world.Settle();
  world.Start();
  world.Settle();
  EXPECT_EQ(world.status_writes, writes);
  world.Edit(kQuotas, "", "team-a", {{"peakInstances", 7}});
  world.Settle();
  EXPECT_EQ(Status().at("peakInstances"), 0);
}

}  // namespace
}  // namespace tahoma::controller

// Gangs keep away from hardware of Capacity Blocks, and stay on that of their own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "controller/plan/planner.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;

class PlannerBlocksTest : public ::testing::Test {
 protected:
  PlannerBlocksTest() {
    AddUltraServer(state_, "us-0");
    AddUltraServer(state_, "us-1");
  }

  static GangSpec Shaped(const std::string& name, const std::string& shape, int chips) {
    GangSpec gang = GangOf(name, 1, [&](const std::string& pod) { return ChipClaim(pod, chips); });
    gang.shape_text = shape;
    return gang;
  }
  // A gang of one pod with a claim and no shape.
  static GangSpec Plain(const std::string& name) {
    return GangOf(name, 1, [](const std::string& pod) { return ChipClaim(pod, 4); });
  }

  std::string Where(GangSpec gang) {
    const auto shared = std::make_shared<const GangSpec>(std::move(gang));
    const Decision decision = planner_.Plan(state_, {shared}, now_)[0];
    if (!decision.placement) return decision.blocked->message;
    return decision.placement->members[0].node.substr(0, 4);
  }
  GangSpec In(GangSpec gang, const std::string& reservation, const std::string& host) const {
    gang.block = "train";
    gang.reservation = reservation;
    gang.block_hosts = {host};
    return gang;
  }

  ClusterState state_;
  Planner planner_;
  WallTime now_ = WallTime(hours(24));
};

TEST_F(PlannerBlocksTest, AHostOfABlockIsForGangsOfTheBlockOnly) {
  state_.SetBlockUse("us-0", {.reservation = "cr-1", .kept_from = {}});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Where(Shaped("a", "4x4", 16)), "us-1");
    EXPECT_EQ(Where(Plain("b")), "us-1");
    EXPECT_EQ(Where(In(Shaped("c", "4x4", 16), "cr-1", "us-0")), "us-0");
    EXPECT_EQ(Where(In(Plain("d"), "cr-1", "us-0")), "us-0");
  }
  state_.SetBlockUse("us-1", {.reservation = "cr-2", .kept_from = {}});
  EXPECT_THAT(Where(Plain("e")),
              HasSubstr("; 2 topology domains are kept for Capacity Blocks, without a maxRuntime "
                        "for good"));
  state_.SetBlockUse("us-0", {});
  EXPECT_EQ(Where(Plain("e")), "us-0");
}

TEST_F(PlannerBlocksTest, AGangOfABlockThatIsFullSaysWhereItMayRun) {
  state_.SetBlockUse("us-0", {.reservation = "cr-1", .kept_from = {}});
  const GangSpec first =
      In(GangOf("first", 4, [](const std::string& pod) { return ChipClaim(pod, 16); }), "cr-1",
         "us-0");
  const auto shared = std::make_shared<const GangSpec>(first);
  const Decision decision = planner_.Plan(state_, {shared}, now_)[0];
  ASSERT_TRUE(decision.placement);
  for (auto& holding : decision.placement->Holdings(*shared, now_)) state_.Hold(holding);
  EXPECT_THAT(Where(In(Plain("second"), "cr-1", "us-0")),
              HasSubstr("; only hardware of Capacity Block train may be used: us-0"));
}

TEST_F(PlannerBlocksTest, AHostThatIsKeptIsForGangsThatEndBefore) {
  state_.SetBlockUse("us-0", {.reservation = "", .kept_from = now_ + hours(10)});
  state_.SetBlockUse("us-1", {.reservation = "", .kept_from = now_ + hours(20)});
  GangSpec gang = Plain("a");
  EXPECT_THAT(Where(gang), HasSubstr("kept for Capacity Blocks"));
  gang.max_runtime = hours(20);
  EXPECT_EQ(Where(gang), "us-1");
  gang.max_runtime = hours(10);
  EXPECT_EQ(Where(gang), "us-0");
  gang.max_runtime = hours(21);
  EXPECT_THAT(Where(gang), HasSubstr("2 topology domains are kept for Capacity Blocks"));
}

TEST_F(PlannerBlocksTest, APodWithoutDevicesRunsAnywhere) {
  state_.SetBlockUse("us-0", {.reservation = "cr-1", .kept_from = {}});
  state_.SetBlockUse("us-1", {.reservation = "cr-2", .kept_from = {}});
  GangSpec gang = GangOf("a", 1, [](const std::string& pod) { return ChipClaim(pod, 1); });
  gang.members[0].claims.clear();
  EXPECT_EQ(Where(gang), "us-0");
}

}  // namespace
}  // namespace tahoma::controller

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
  // A minute for its binding, and the grace of its pods.
  gang.grace = std::chrono::seconds(30);
  gang.max_runtime = hours(20) - std::chrono::seconds(90);
  EXPECT_EQ(Where(gang), "us-1");
  gang.max_runtime = hours(10) - std::chrono::seconds(90);
  EXPECT_EQ(Where(gang), "us-0");
  gang.max_runtime = hours(20) - std::chrono::seconds(89);
  EXPECT_THAT(Where(gang), HasSubstr("2 topology domains are kept for Capacity Blocks"));
}

// A day of blocks is a minute there: the minute that binding may take elsewhere is more than there
// ever is before a block.
TEST_F(PlannerBlocksTest, OnATestClockAShortGangEndsBeforeTheNextBlock) {
  for (const char* host : {"us-0", "us-1"}) {
    state_.SetBlockUse(host, {.kept_from = now_ + std::chrono::seconds(40), .scale = 1440});
  }
  GangSpec gang = Plain("short");
  gang.grace = std::chrono::seconds(2);
  gang.max_runtime = std::chrono::seconds(3);
  EXPECT_EQ(Where(gang), "us-0");
  gang.max_runtime = std::chrono::seconds(33);
  EXPECT_EQ(Where(gang), "us-0");
  gang.max_runtime = std::chrono::seconds(34);
  EXPECT_THAT(Where(gang), HasSubstr("kept for Capacity Blocks"));
}

TEST_F(PlannerBlocksTest, APreemptibleGangBorrowsWhereItMayStayForAWhile) {
  state_.SetBlockUse("us-0", {.kept_from = now_ + kLoanLead + kLoanLeast});
  state_.SetBlockUse("us-1", {.reservation = "cr-2"});
  GangSpec gang = Plain("a");
  gang.preemptible = true;
  EXPECT_EQ(Where(gang), "us-0");
  gang.grace = kLoanLead + std::chrono::seconds(1);
  EXPECT_THAT(Where(gang), HasSubstr("2 topology domains are kept for Capacity Blocks"));
  state_.SetBlockUse("us-1", {.reservation = "cr-2", .lent_until = now_ + hours(2)});
  EXPECT_EQ(Where(gang), "us-1");
  state_.SetWanted(*state_.FindDomain("us-1"), true);
  EXPECT_THAT(Where(gang), HasSubstr("kept for Capacity Blocks"));
  state_.SetBlockUse("us-1", {.reservation = "cr-2", .lent_until = now_ + hours(2)});
  EXPECT_THAT(Where(gang), HasSubstr("kept for Capacity Blocks")) << "it stays wanted";
  state_.SetBlockUse("us-1", {.reservation = "cr-3", .lent_until = now_ + hours(2)});
  EXPECT_EQ(Where(gang), "us-1");
}

TEST_F(PlannerBlocksTest, SparesAreForThoseWhoCanBeEndedOrEndThemselves) {
  state_.SetBlockUse("us-0", {.spare = true});
  state_.SetBlockUse("us-1", {.spare = true});
  GangSpec gang = Plain("a");
  EXPECT_THAT(Where(gang), HasSubstr("2 topology domains are kept for Capacity Blocks"));
  gang.preemptible = true;
  EXPECT_EQ(Where(gang), "us-0");
  gang.preemptible = false;
  gang.max_runtime = hours(1000);
  EXPECT_EQ(Where(gang), "us-0");
}

// Gangs with the same request that differ in where they may run do not answer for each other.
TEST_F(PlannerBlocksTest, AGangThatWaitsInItsBlockSaysNothingOfOthers) {
  state_.SetBlockUse("us-0", {.reservation = "cr-1"});
  const auto lost = std::make_shared<const GangSpec>(In(Plain("lost"), "cr-9", "us-0"));
  const auto plain = std::make_shared<const GangSpec>(Plain("plain"));
  const auto decisions = planner_.Plan(state_, {lost, plain}, now_);
  EXPECT_FALSE(decisions[0].placement);
  EXPECT_TRUE(decisions[1].placement);
}

TEST_F(PlannerBlocksTest, AMagneticBlockDrawsAGangThatFits) {
  state_.SetBlockUse("us-1", {.reservation = "cr-1"});
  GangSpec gang = Shaped("a", "4x4", 16);
  gang.drawn.push_back(std::make_shared<const GangSpec>(In(gang, "cr-1", "us-1")));
  EXPECT_EQ(Where(gang), "us-1");
  GangSpec big = GangOf("big", 4, [](const std::string& pod) { return ChipClaim(pod, 16); });
  const GangSpec in_block = In(big, "cr-1", "us-1");
  const auto held = planner_.Plan(state_, {std::make_shared<const GangSpec>(in_block)}, now_)[0];
  for (auto& holding : held.placement->Holdings(in_block, now_)) state_.Hold(holding);
  EXPECT_EQ(Where(gang), "us-0") << "it is full";
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

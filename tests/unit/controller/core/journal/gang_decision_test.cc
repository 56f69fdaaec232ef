// What a decision says of the Capacity Block that its gang runs in.

#include "controller/core/journal/gang_decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/model/gang.h"
#include "controller/plan/decision.h"
#include "lib/driver/block_config.h"

namespace tahoma::controller {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

const WallTime kNoon = *ParseTime("2026-11-23T12:00:00Z");

class GangDecisionTest : public ::testing::Test {
 protected:
  GangDecisionTest() {
    MemberSpec member{
        .pod = {"default", "train-0"}, .uid = "u0", .node = {}, .needs = nullptr, .claims = {}};
    ClaimSpec claim;
    claim.key = {"default", "chips"};
    member.claims.push_back(claim);
    spec_.members.push_back(member);
    MemberPlacement placed;
    placed.pod = member.pod;
    placed.uid = "u0";
    placed.node = "n0";
    placed.claims.push_back({.claim = claim.key, .uid = "cu", .allocation = {}});
    placement_.members.push_back(placed);
  }
  std::vector<DeviceConfig> Configs() {
    return DecisionOf(spec_, placement_, kNoon).claims.at(0).allocation.configs;
  }

  GangSpec spec_;
  Placement placement_;
};

TEST_F(GangDecisionTest, OutsideOfBlocksClaimsHaveTheirOwnConfigurationsOnly) {
  EXPECT_THAT(Configs(), IsEmpty());
}

TEST_F(GangDecisionTest, InABlockTheNodesDriverIsToldWhenTheHardwareIsTakenBack) {
  spec_.reclaim = kNoon + std::chrono::hours(22) + std::chrono::nanoseconds(1);
  const auto configs = Configs();
  ASSERT_THAT(configs, SizeIs(1));
  EXPECT_EQ(configs[0].driver, "tahoma.dev");
  EXPECT_EQ(configs[0].source, ConfigSource::kClaim);
  EXPECT_THAT(configs[0].requests, IsEmpty());
  EXPECT_EQ(WallTime(std::chrono::milliseconds(
                hw::ParseBlockConfig(configs[0].parameters)->reclaim_timestamp)),
            kNoon + std::chrono::hours(22));
}

TEST_F(GangDecisionTest, AClaimThatIsFullOfConfigurationsStaysAsItIs) {
  spec_.reclaim = kNoon;
  placement_.members[0].claims[0].allocation.configs.resize(64);
  EXPECT_THAT(Configs(), SizeIs(64));
}

}  // namespace
}  // namespace tahoma::controller

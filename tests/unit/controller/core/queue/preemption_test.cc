// Gangs that end others of lower priority, in a core with all its parts.

#include "controller/core/queue/preemption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PreemptionTest : public ::testing::Test {
 protected:
  PreemptionTest() { world_.api.AddNode("node-a"); }
  // A gang of one pod, "<name>-0".
  void Add(const std::string& name, int chips, std::int32_t priority, bool preemptible = false) {
    world_.api.AddGang(name, 1);
    world_.api.ChangeGang(name, [&](GangFact& gang) {
      gang.priority = priority;
      gang.preemptible = preemptible;
    });
    world_.api.AddPodWithClaim(name + "-0", name, chips);
    Settle();
  }
  // Without controllers pods that are deleted do not end.
  void Settle(bool controllers = true) { ASSERT_TRUE(world_.Settle(3000, controllers)); }
  std::string NodeOf(const std::string& gang) const {
    const auto pod = world_.api.pods().find(gang + "-0");
    return pod == world_.api.pods().end() ? "gone" : pod->second.node;
  }
  std::ptrdiff_t Preempted() const { return EventsOf(world_.api, EventReason::kGangPreempted); }

  World world_;
};

// The defect: it waited for the other's end.
TEST_F(PreemptionTest, AGangGetsTheHardwareOfAPreemptibleOneOfLowerPriority) {
  Add("low", 16, -10, true);
  EXPECT_EQ(NodeOf("low"), "node-a");
  Add("high", 16, 1000);
  EXPECT_EQ(NodeOf("high"), "node-a");
  EXPECT_EQ(NodeOf("low"), "gone");
  EXPECT_EQ(Preempted(), 1);
  for (const EventNote& event : world_.api.events()) {
    if (event.reason != "GangPreempted") continue;
    EXPECT_THAT(event.message, HasSubstr("gang default/high of priority 1000 needs its hardware"));
  }
  world_.api.CheckAtRest();
  EXPECT_THAT(world_.api.faults, IsEmpty());
}

TEST_F(PreemptionTest, NobodyIsEndedWhoHasNotAgreedOrIsNotLowerOrWhereItDoesNotHelp) {
  Add("usual", 8, -10);
  Add("equal", 8, 1000, true);
  Add("high", 8, 1000);
  EXPECT_EQ(NodeOf("high"), "");
  Add("huge", 32, 2000);
  EXPECT_EQ(NodeOf("huge"), "");
  EXPECT_EQ(Preempted(), 0);
  EXPECT_EQ(NodeOf("usual"), "node-a");
  EXPECT_EQ(NodeOf("equal"), "node-a");
}

TEST_F(PreemptionTest, TheLowestPriorityEndsFirst) {
  world_.api.AddNode("node-b");
  Add("middle", 16, -5, true);
  Add("lowest", 16, -10, true);
  Add("high", 16, 0);
  EXPECT_EQ(NodeOf("high"), "node-b");
  EXPECT_EQ(NodeOf("lowest"), "gone");
  EXPECT_EQ(NodeOf("middle"), "node-a");
  Add("more", 16, 0);
  EXPECT_EQ(NodeOf("more"), "node-a");
  EXPECT_EQ(Preempted(), 2);
}

// What is free already, too: else those who were ended were ended in vain.
TEST_F(PreemptionTest, ThePlaceIsKeptFromGangsBehindUntilTheOthersHaveGone) {
  Add("low", 8, -10, true);
  world_.api.AddGang("high", 1);
  world_.api.ChangeGang("high", [](GangFact& gang) { gang.priority = 1000; });
  world_.api.AddPodWithClaim("high-0", "high", 16);
  Settle(false);
  EXPECT_EQ(NodeOf("low"), "node-a") << "it is ending";
  EXPECT_EQ(Preempted(), 1);
  world_.api.AddPodWithClaim("small", "", 8);
  Settle(false);
  EXPECT_EQ(world_.api.pods().at("small").node, "");
  Settle();
  EXPECT_EQ(NodeOf("high"), "node-a");
  EXPECT_EQ(world_.api.pods().at("small").node, "");
  EXPECT_EQ(Preempted(), 1);
}

TEST_F(PreemptionTest, NothingIsKeptForAGangThatHasGone) {
  Add("low", 8, -10, true);
  world_.api.AddGang("high", 1);
  world_.api.ChangeGang("high", [](GangFact& gang) { gang.priority = 1000; });
  world_.api.AddPodWithClaim("high-0", "high", 16);
  Settle(false);
  world_.api.AddPodWithClaim("small", "", 8);
  Settle(false);
  EXPECT_EQ(world_.api.pods().at("small").node, "");
  world_.api.DeletePod("high-0");
  Settle(false);
  EXPECT_EQ(world_.api.pods().at("small").node, "node-a");
}

// Whose priority is higher than that of the gang for which others end.
TEST_F(PreemptionTest, NothingIsKeptFromGangsThatAreServedBefore) {
  Add("low", 8, -10, true);
  world_.api.AddGang("high", 1);
  world_.api.ChangeGang("high", [](GangFact& gang) { gang.priority = 1000; });
  world_.api.AddPodWithClaim("high-0", "high", 16);
  Settle(false);
  Add("first", 8, 2000);
  EXPECT_EQ(NodeOf("first"), "node-a");
  EXPECT_EQ(NodeOf("high"), "");
}

TEST_F(PreemptionTest, APriorityIsKnownAfterARestart) {
  for (const bool with_journal : {true, false}) {
    const std::string suffix = with_journal ? "1" : "2";
    Add("low" + suffix, 16, -10, true);
    if (!with_journal) world_.journal.Lose();
    world_.Start();
    Settle();
    Add("high" + suffix, 16, 1000);
    EXPECT_EQ(NodeOf("high" + suffix), "node-a");
    world_.api.FinishPod("high" + suffix + "-0", true);
    Settle();
  }
}

}  // namespace
}  // namespace tahoma::controller

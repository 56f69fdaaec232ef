// Gangs that end others of lower priority, in a core with all its parts.

#include "controller/core/queue/preemption.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "lib/base/rng.h"
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

// The defect: the gang waited for the other's end.
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

// Free chips are kept, too: else runs would end in vain.
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

TEST_F(PreemptionTest, NobodyTakesThePlaceThatOthersEndForNotEvenAHigherPriority) {
  Add("low", 8, -10, true);
  world_.api.AddGang("high", 1);
  world_.api.ChangeGang("high", [](GangFact& gang) { gang.priority = 1000; });
  world_.api.AddPodWithClaim("high-0", "high", 16);
  Settle(false);
  world_.api.AddGang("first", 1);
  world_.api.ChangeGang("first", [](GangFact& gang) { gang.priority = 2000; });
  world_.api.AddPodWithClaim("first-0", "first", 8);
  Settle(false);
  EXPECT_EQ(NodeOf("first"), "");
  Settle();
  EXPECT_EQ(NodeOf("high"), "node-a");
  EXPECT_EQ(NodeOf("first"), "");
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

TEST_F(PreemptionTest, OneGangEndsWhereTwoWouldHaveTo) {
  world_.api.AddNode("node-b");
  Add("half", 8, -10, true);
  Add("other", 8, -10, true);
  Add("whole", 16, -10, true);
  Add("high", 16, 1000);
  EXPECT_EQ(NodeOf("whole"), "gone");
  EXPECT_EQ(NodeOf("half"), "node-a");
  EXPECT_EQ(NodeOf("other"), "node-a");
  EXPECT_EQ(Preempted(), 1);
}

// Work counts since the last checkpoint, by an annotation of the Gang or of a pod.
TEST_F(PreemptionTest, TheGangThatLosesLeastWorkEnds) {
  for (const char* node : {"node-b", "node-c", "node-d"}) world_.api.AddNode(node);
  Add("first", 16, -10, true);
  Add("gang-says", 16, -10, true);
  Add("pod-says", 16, -10, true);
  Add("no-use", 16, -10, true);
  world_.MoveTo(world_.Time().wall + std::chrono::hours(1));
  const auto ago = [&](int minutes) { return world_.Time().wall - std::chrono::minutes(minutes); };
  world_.api.ChangeGang("gang-says", [&](GangFact& gang) { gang.checkpoint = ago(20); });
  world_.api.ChangePod("pod-says-0", [&](PodFact& pod) { pod.checkpoint = ago(10); });
  world_.api.ChangeGang("no-use", [&](GangFact& gang) {
    gang.checkpoint = ago(1);
    gang.checkpointable = false;
  });
  Settle();
  Add("high", 16, 1000);
  EXPECT_EQ(NodeOf("pod-says"), "gone");
  Add("next", 16, 1000);
  EXPECT_EQ(NodeOf("gang-says"), "gone");
  EXPECT_EQ(NodeOf("no-use"), "node-d");
  EXPECT_EQ(Preempted(), 2);
}

TEST_F(PreemptionTest, NobodyEndsBeforeItsMinRuntimeIsOver) {
  world_.api.AddGang("low", 1);
  world_.api.ChangeGang("low", [](GangFact& gang) {
    gang.priority = -10;
    gang.preemptible = true;
    gang.min_runtime = std::chrono::hours(1);
  });
  world_.api.AddPodWithClaim("low-0", "low", 16);
  Settle();
  const WallTime begun = world_.Time().wall;
  Add("high", 16, 1000);
  EXPECT_EQ(NodeOf("low"), "node-a");
  world_.MoveTo(begun + std::chrono::minutes(55));
  EXPECT_EQ(NodeOf("low"), "node-a");
  EXPECT_EQ(NodeOf("high"), "");
  world_.MoveTo(begun + std::chrono::minutes(61));
  EXPECT_EQ(NodeOf("low"), "gone");
  EXPECT_EQ(NodeOf("high"), "node-a");
}

// A gang guarded by a budget, whose pod runs.
void Guard(World& world, const std::string& gang, const std::string& app) {
  world.api.ChangePod(gang + "-0", [&](PodFact& pod) {
    pod.labels = {{"app", app}};
    pod.running = true;
  });
}

TEST_F(PreemptionTest, NobodyEndsWhomABudgetGuards) {
  world_.api.PutBudget("web", "web", 0);
  Add("low", 16, -10, true);
  Guard(world_, "low", "web");
  Settle();
  Add("high", 16, 1000);
  EXPECT_EQ(NodeOf("low"), "node-a");
  EXPECT_EQ(NodeOf("high"), "");
  world_.api.PutBudget("web", "web", 1);
  Settle();
  EXPECT_EQ(NodeOf("low"), "gone");
  EXPECT_EQ(NodeOf("high"), "node-a");
}

TEST_F(PreemptionTest, ABudgetLetsAsManyGangsEndTogetherAsItAllows) {
  world_.api.PutBudget("web", "web", 1);
  for (const char* name : {"one", "two"}) {
    Add(name, 8, -10, true);
    Guard(world_, name, "web");
  }
  Settle();
  Add("high", 16, 1000);
  EXPECT_EQ(Preempted(), 0) << "two pods would have to end";
  Add("half", 8, 1000);
  EXPECT_EQ(Preempted(), 1);
  Add("other", 8, 1000);
  EXPECT_EQ(Preempted(), 2) << "here nobody shows in the budget that a pod has ended";
  EXPECT_EQ(NodeOf("half"), "node-a");
}

// Budgets follow the ends of pods a while later.
TEST_F(PreemptionTest, ABudgetIsNotSpentTwiceWhileGangsEnd) {
  world_.api.PutBudget("web", "web", 1);
  for (const char* name : {"one", "two"}) {
    Add(name, 8, -10, true);
    Guard(world_, name, "web");
  }
  Settle();
  for (const char* name : {"half", "other"}) {
    world_.api.AddGang(name, 1);
    world_.api.ChangeGang(name, [](GangFact& gang) { gang.priority = 1000; });
    world_.api.AddPodWithClaim(std::string(name) + "-0", name, 8);
    Settle(false);
  }
  EXPECT_EQ(Preempted(), 1) << "the first has not gone yet";
}

TEST_F(PreemptionTest, AGangWithoutABudgetEndsInsteadOfAGuardedOne) {
  world_.api.AddNode("node-b");
  world_.api.PutBudget("web", "web", 0);
  Add("guarded", 16, -20, true);
  Guard(world_, "guarded", "web");
  Add("free", 16, -10, true);
  Guard(world_, "free", "batch");
  Settle();
  Add("high", 16, 1000);
  EXPECT_EQ(NodeOf("guarded"), "node-a");
  EXPECT_EQ(NodeOf("free"), "gone");
}

TEST_F(PreemptionTest, APolicyOfNeverEndsNobody) {
  Add("low", 16, -10, true);
  world_.api.AddGang("high", 1);
  world_.api.ChangeGang("high", [](GangFact& gang) {
    gang.priority = 1000;
    gang.preempts = false;
  });
  world_.api.AddPodWithClaim("high-0", "high", 16);
  Settle();
  EXPECT_EQ(NodeOf("low"), "node-a");
  EXPECT_EQ(NodeOf("high"), "");
  world_.api.ChangeGang("high", [](GangFact& gang) { gang.preempts.reset(); });
  Settle();
  EXPECT_EQ(NodeOf("high"), "node-a");
}

// Kueue 13662: two workloads end for a third. The first to go came back before the second had gone,
// and was ended again, for ever.
TEST_F(PreemptionTest, WhoeverEndsFirstDoesNotComeBackBeforeTheOthersHaveGone) {
  world_.api.AddNode("node-b");
  Add("early", 16, -10, true);
  Add("late", 16, -10, true);
  world_.api.AddGang("high", 2);
  world_.api.ChangeGang("high", [](GangFact& gang) { gang.priority = 1000; });
  world_.api.AddPodWithClaim("high-0", "high", 16);
  world_.api.AddPodWithClaim("high-1", "high", 16);
  Settle(false);
  EXPECT_EQ(Preempted(), 2);
  world_.api.FinishPod("early-0", false);
  Settle(false);
  for (int round = 0; round < 5; ++round) {
    const std::string name = "early-again-" + std::to_string(round);
    world_.api.AddPodWithClaim(name, "", 16);
    Settle(false);
    EXPECT_EQ(world_.api.pods().at(name).node, "");
  }
  EXPECT_EQ(Preempted(), 2);
  Settle();
  EXPECT_NE(world_.api.pods().at("high-0").node, "");
  EXPECT_NE(world_.api.pods().at("high-1").node, "");
  EXPECT_EQ(Preempted(), 2);
}

// A day of gangs that come, run and go, on a fleet that is too small. An ended gang comes again at
// once, with new pods.
TEST_F(PreemptionTest, ADayOfRandomLoadHasNoCycles) {
  for (const char* node : {"node-b", "node-c"}) world_.api.AddNode(node);
  struct Load {
    std::int32_t priority = 0;
    WallTime ends;
    int pods = 0;  // made so far
    bool over = false;
  };
  Rng rng(47);
  std::map<std::string, Load> all;
  const auto make_pod = [&](const std::string& name, Load& load) {
    world_.api.AddPodWithClaim(fmt::format("{}-{}", name, load.pods++), name,
                               1 << (1 + rng.Below(4)));
  };
  const WallTime end = world_.Time().wall + std::chrono::hours(24);
  for (int count = 0; world_.Time().wall < end;) {
    if (count < 120) {
      const std::string name = "g" + std::to_string(count++);
      Load& load = all[name];
      load.priority = static_cast<std::int32_t>(rng.Below(4)) * 10;
      load.ends = world_.Time().wall + std::chrono::minutes(20 + rng.Below(120));
      world_.api.AddGang(name, 1);
      world_.api.ChangeGang(name, [&](GangFact& gang) {
        gang.priority = load.priority;
        gang.preemptible = rng.Chance(3, 4);
        if (rng.Chance(1, 4)) gang.min_runtime = std::chrono::minutes(rng.Below(40));
      });
      make_pod(name, load);
    }
    world_.MoveTo(world_.Time().wall + std::chrono::minutes(12));
    for (auto& [name, load] : all) {
      if (load.over) continue;
      const std::string pod = fmt::format("{}-{}", name, load.pods - 1);
      const auto found = world_.api.pods().find(pod);
      if (found == world_.api.pods().end()) {
        make_pod(name, load);
      } else if (!found->second.node.empty() && load.ends <= world_.Time().wall) {
        world_.api.FinishPod(pod, true);
        load.over = true;
      }
    }
  }
  // "gang default/g1 of priority 20 needs its hardware", about gang default/g2.
  std::set<std::pair<std::string, std::string>> pairs;
  for (const EventNote& event : world_.api.events()) {
    if (event.reason != "GangPreempted" || event.about != EventSubject::kGang) continue;
    const std::size_t at = event.message.find("gang default/") + 13;
    const std::string by = event.message.substr(at, event.message.find(' ', at) - at);
    ASSERT_TRUE(all.contains(by)) << event.message;
    EXPECT_GT(all.at(by).priority, all.at(event.name).priority) << event.message;
    EXPECT_TRUE(pairs.emplace(by, event.name).second) << event.name << ": " << event.message;
  }
  EXPECT_GT(pairs.size(), 10U);
  EXPECT_THAT(world_.api.faults, IsEmpty());
}

// A queue's gangs end for another queue only as far as they have borrowed, and where they may end.
TEST_F(PreemptionTest, AQueueWithinItsGuaranteeTakesBackWhatOthersHaveBorrowed) {
  const auto put = [&](const std::string& name, std::int64_t guaranteed) {
    world_.api.PutQueue(name,
                        [&](QueueSpec& queue) { queue.guaranteed["trn2.48xlarge"] = guaranteed; });
  };
  const auto add = [&](const std::string& name, const std::string& queue, int chips,
                       std::int32_t priority, bool preemptible) {
    world_.api.AddGang(name, 1);
    world_.api.ChangeGang(name, [&](GangFact& gang) {
      gang.queue = queue;
      gang.priority = priority;
      gang.preemptible = preemptible;
    });
    world_.api.AddPodWithClaim(name + "-0", name, chips);
    Settle();
  };
  put("owner", 8);
  put("guest", 4);
  add("stays", "guest", 4, 1000, false);
  add("goes", "guest", 12, 1000, true);
  EXPECT_EQ(NodeOf("goes"), "node-a");
  add("large", "owner", 12, 2000, false);
  EXPECT_EQ(NodeOf("large"), "") << "more than the guarantee";
  EXPECT_EQ(NodeOf("goes"), "node-a");
  add("claims", "owner", 8, 0, false);
  EXPECT_EQ(NodeOf("claims"), "node-a");
  EXPECT_EQ(NodeOf("goes"), "gone");
  EXPECT_EQ(NodeOf("stays"), "node-a");
  EXPECT_EQ(Preempted(), 1);
}

TEST_F(PreemptionTest, PriorityEndsNobodyInOtherQueues) {
  for (const std::string name : {"one", "two"}) world_.api.PutQueue(name, [](QueueSpec&) {});
  Add("low", 16, -10, true);
  world_.api.AddGang("high", 1);
  world_.api.ChangeGang("high", [](GangFact& gang) {
    gang.queue = "one";
    gang.priority = 1000;
  });
  world_.api.AddPodWithClaim("high-0", "high", 16);
  Settle();
  EXPECT_EQ(NodeOf("high"), "");
  EXPECT_EQ(NodeOf("low"), "node-a");
}

}  // namespace
}  // namespace tahoma::controller

// Pods whose label tahoma.dev/gang changes, at any moment: gangs follow the labels of the pods that
// wait, a run keeps the pods that it was begun with, and a restart finds the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using ::testing::IsEmpty;

void Label(World& world, const std::string& pod, const std::string& gang) {
  world.api.ChangePod(pod, [&](PodFact& fact) { fact.gang = gang; });
}

std::string ReasonOf(const FakeApi& api, const std::string& gang) {
  return api.statuses().at(gang).conditions.at(0).message;
}

// A gang of two that runs, and one of two whose second pod is not made yet.
void RunOneAndLetOneWait(World& world) {
  AddGangOfTwo(world.api);
  ASSERT_TRUE(world.Settle());
  ASSERT_EQ(BoundPods(world.api), 2);
  world.api.AddGang("later", 2);
  world.api.AddPodWithClaim("later-0", "later", 2);
  ASSERT_TRUE(world.Settle());
  EXPECT_EQ(ReasonOf(world.api, "later"), "1 of 2 pods exist");
}

TEST(CoreLabelsTest, ABoundPodThatIsLabelledIntoAnotherGangAndBackLeavesNothingThere) {
  World world;
  RunOneAndLetOneWait(world);
  Label(world, "train-0", "later");
  ASSERT_TRUE(world.Settle());
  EXPECT_EQ(ReasonOf(world.api, "later"), "pod train-0 is bound to node node-a without the gang");
  EXPECT_EQ(world.api.statuses().at("train").phase, GangPhase::kRunning);
  Label(world, "train-0", "train");
  ASSERT_TRUE(world.Settle());
  EXPECT_EQ(ReasonOf(world.api, "later"), "1 of 2 pods exist");
  world.api.AddPodWithClaim("later-1", "later", 2);
  ASSERT_TRUE(world.Settle());
  EXPECT_EQ(BoundPods(world.api), 4);
  EXPECT_THAT(world.api.faults, IsEmpty());
}

// With and without its journal: a stand-by has none.
TEST(CoreLabelsTest, ARestartTakesNoPodFromAGangForALabel) {
  for (const bool with_journal : {true, false}) {
    World world;
    RunOneAndLetOneWait(world);
    Label(world, "train-0", "later");
    ASSERT_TRUE(world.Settle());
    if (!with_journal) world.journal.Lose();
    world.Start();
    ASSERT_TRUE(world.Settle());
    EXPECT_EQ(BoundPods(world.api), 2) << with_journal;
    EXPECT_EQ(world.api.statuses().at("train").phase, GangPhase::kRunning);
    EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 2U);
    EXPECT_EQ(EventsOf(world.api, EventReason::kGangUndone), 0);
    EXPECT_EQ(ReasonOf(world.api, "later"), "pod train-0 is bound to node node-a without the gang");
  }
}

TEST(CoreLabelsTest, APodThatIsLabelledIntoAGangIsNoGangOfOneAnyMore) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddGang("train", 2);
  world.api.AddPodWithClaim("train-0", "train", 4);
  world.api.AddPodWithClaim("solo", "", 32);
  ASSERT_TRUE(world.Settle());
  EXPECT_EQ(world.core().snapshot()->gangs_waiting, 2U);
  Label(world, "solo", "train");
  ASSERT_TRUE(world.Settle());
  EXPECT_EQ(world.core().snapshot()->gangs_waiting, 1U);
  EXPECT_EQ(world.api.conditions().at("solo"), "no node has room") << "of the gang, as its claim";
}

// Its claims would not show it: it has none.
TEST(CoreLabelsTest, APodThatIsBeingBoundIsInNoSecondRun) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddGang("train", 1);
  world.api.AddGang("other", 1);
  world.api.AddPod("p", "train", {});
  bool labelled = false;
  world.on_writes = [&](const std::vector<ApiWrite>& writes) {
    for (const ApiWrite& write : writes) {
      if (write.kind() == WriteKind::kBind && !std::exchange(labelled, true)) {
        Label(world, "p", "other");
      }
    }
  };
  world.fate = [](int n) { return n < 20 ? Fate::kNotDone : Fate::kNormal; };
  ASSERT_TRUE(world.Settle());
  EXPECT_TRUE(labelled);
  EXPECT_EQ(world.core().snapshot()->counters.gangs_prepared, 1U);
  EXPECT_EQ(world.api.statuses().at("train").phase, GangPhase::kRunning);
  EXPECT_EQ(ReasonOf(world.api, "other"), "pod p is bound to node node-a without the gang");
}

// Everything that a core shows and holds.
std::map<std::string, std::string> Shown(const World& world, Core& core) {
  std::map<std::string, std::string> shown;
  core.snapshot()->gangs.ForEach([&](const GangRef& ref, const auto& view) {
    shown[Describe(ref)] = fmt::format("{} {} {} bound {}", ToString(view->phase),
                                       ToString(view->reason), view->message, view->bound_pods);
  });
  core.snapshot()->cluster->ForEachHolding([&](const Holding& holding) {
    std::set<std::string> devices;
    for (const auto& held : holding.devices) devices.insert(held.node + "/" + held.device);
    shown["claim " + holding.claim_uid] =
        fmt::format("{}: {}", holding.holder, fmt::join(devices, " "));
  });
  shown["waiting"] = std::to_string(core.snapshot()->gangs_waiting);
  for (const auto& [name, status] : world.api.statuses()) {
    shown["status " + name] = ToString(status.phase);
  }
  return shown;
}

TEST(CoreLabelsTest, ACoreThatSawAnyChangesOfLabelsIsAsOneThatBeginsWithTheSameObjects) {
  const std::vector<std::string> gangs = {"", "a", "b", "c"};
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    World world;
    for (const char* node : {"node-a", "node-b"}) world.api.AddNode(node);
    for (const char* gang : {"a", "b", "c"})
      world.api.AddGang(gang, 1 + static_cast<int>(rng.Below(3)));
    std::vector<std::string> pods;
    std::set<std::string> bound;
    for (int step = 0; step < 30; ++step) {
      if (pods.size() < 8 && rng.Chance(1, 3)) {
        pods.push_back(fmt::format("p{}", pods.size()));
        const std::string& gang = gangs[rng.Below(gangs.size())];
        if (rng.Chance(1, 4)) {
          world.api.AddPod(pods.back(), gang, {});
        } else {
          world.api.AddPodWithClaim(pods.back(), gang, 1 + static_cast<int>(rng.Below(9)));
        }
      } else if (!pods.empty()) {
        Label(world, pods[rng.Below(pods.size())], gangs[rng.Below(gangs.size())]);
      }
      // Sometimes in the middle of a commit.
      if (!rng.Chance(1, 3)) world.Settle(static_cast<int>(rng.Below(6)));
    }
    ASSERT_TRUE(world.Settle()) << seed;
    for (const auto& [name, pod] : world.api.pods()) {
      if (!pod.node.empty()) bound.insert(name);
    }
    const auto lived = Shown(world, world.core());
    world.Start();
    ASSERT_TRUE(world.Settle()) << seed;
    ASSERT_EQ(Shown(world, world.core()), lived) << seed;
    world.api.CheckDevices();
    ASSERT_THAT(world.api.faults, IsEmpty()) << seed;
    for (const std::string& name : bound) {
      ASSERT_TRUE(world.api.pods().contains(name)) << "seed " << seed << " took pod " << name;
    }
  }
}

}  // namespace
}  // namespace tahoma::controller

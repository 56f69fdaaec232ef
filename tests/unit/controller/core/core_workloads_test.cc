// NeuronUltraServerWorkloads, from the object to bound pods.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

WorkloadFact Workload(const std::string& name = "train", const std::string& uid = "u-workload") {
  return **ParseWorkload(
      {{"metadata", {{"name", name}, {"namespace", "default"}, {"uid", uid}, {"generation", 1}}},
       {"spec",
        {{"instanceType", "trn2u.48xlarge"},
         {"topologySize", 2},
         {"serverCount", 1},
         {"resourceClaimTemplate", {{"name", "rct"}}}}}});
}

// Each of the two pods takes more than half of a node.
void AddWorkloadOfTwo(FakeApi& api) {
  api.AddNode("node-a");
  api.AddNode("node-b");
  api.AddPodOfTemplate("p-0", "rct");
  api.AddWorkload(Workload());
  api.AddPodOfTemplate("p-1", "rct");
}

const WorkloadCondition& Ready(const World& world) {
  return world.api.workload_statuses().at("train").conditions.at(0);
}

void ExpectAllocated(World& world) {
  EXPECT_EQ(BoundPods(world.api), 2);
  EXPECT_EQ(world.api.gangs().size(), 1U);
  EXPECT_EQ(world.api.claim_templates().at("rct").workload_uid, "u-workload");
  EXPECT_EQ(world.api.workload_statuses().at("train").state, WorkloadState::kAllocated);
  EXPECT_TRUE(Ready(world).holds);
  EXPECT_THAT(world.api.faults, IsEmpty());
}

TEST(CoreWorkloadsTest, ThePodsOfAWorkloadAreBoundTogetherWhetherTheyComeBeforeItOrAfter) {
  World world;
  AddWorkloadOfTwo(world.api);
  std::vector<std::string> states;
  world.on_writes = [&](const std::vector<ApiWrite>& writes) {
    for (const ApiWrite& write : writes) {
      if (const auto* status = std::get_if<WorkloadStatusWrite>(&write.what)) {
        states.emplace_back(ToString(status->status->state));
      }
    }
  };
  world.Settle();
  ExpectAllocated(world);
  EXPECT_EQ(world.api.statuses().at("train").phase, GangPhase::kRunning);
  EXPECT_EQ(states.front(), "Pending");
  EXPECT_EQ(states.back(), "Allocated");
  EXPECT_LT(states.size(), 6U);
}

TEST(CoreWorkloadsTest, TheViewOfAGangSaysWhetherItIsAWorkloads) {
  World world;
  AddWorkloadOfTwo(world.api);
  world.Settle();
  const auto view = [&] {
    return **world.core().snapshot()->gangs.Find(GangRef{{"default", "train"}, false});
  };
  EXPECT_TRUE(view().neuron_workload);
  world.api.RemoveWorkload("train");
  world.Settle();
  EXPECT_FALSE(view().neuron_workload);
  EXPECT_NE(view().decision, nullptr);  // the pods keep their nodes
}

TEST(CoreWorkloadsTest, AWorkloadWithoutPodsHasAGangAndSaysWhatIsMissing) {
  World world;
  world.api.AddWorkload(Workload());
  world.Settle();
  EXPECT_TRUE(world.api.gangs().contains("train"));
  EXPECT_TRUE(world.api.claim_templates().contains("rct"));
  EXPECT_EQ(world.api.workload_statuses().at("train").state, WorkloadState::kPending);
  EXPECT_EQ(Ready(world).message, "0 of 2 pods exist");
}

TEST(CoreWorkloadsTest, NoPodOfAWorkloadIsPlacedAlone) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddWorkload(Workload());
  world.api.AddPodOfTemplate("p-0", "rct");
  world.Settle();
  EXPECT_EQ(BoundPods(world.api), 0);
  EXPECT_THAT(world.api.conditions().at("p-0"), HasSubstr("1 of 2 pods exist"));
}

TEST(CoreWorkloadsTest, AFinishedWorkloadHoldsNothing) {
  World world;
  AddWorkloadOfTwo(world.api);
  world.Settle();
  world.api.FinishPod("p-0", true);
  world.api.FinishPod("p-1", true);
  world.Settle();
  const WorkloadStatus& status = world.api.workload_statuses().at("train");
  EXPECT_EQ(status.state, WorkloadState::kPending);
  EXPECT_THAT(status.ultraservers, IsEmpty());
  EXPECT_EQ(status.allocated_at, std::nullopt);
}

TEST(CoreWorkloadsTest, ATemplateOfSomebodyElseStaysAndItsPodsStayAlone) {
  World world;
  world.api.AddClaimTemplate("rct");
  AddWorkloadOfTwo(world.api);
  world.Settle();
  EXPECT_EQ(world.api.workload_statuses().at("train").state, WorkloadState::kFailed);
  EXPECT_THAT(Ready(world).message, HasSubstr("rct was made by somebody else"));
  EXPECT_THAT(world.api.gangs(), IsEmpty());
  EXPECT_EQ(BoundPods(world.api), 2);  // each by itself
}

TEST(CoreWorkloadsTest, ATemplateThatIsThereBeforeTheWatchTellsIsSaidAndLaterMadeAnew) {
  World world;
  AddWorkloadOfTwo(world.api);
  bool first = true;
  world.on_writes = [&](const std::vector<ApiWrite>& writes) {
    const bool creates = std::ranges::any_of(writes, [](const ApiWrite& write) {
      return write.kind() == WriteKind::kCreateClaimTemplate;
    });
    if (creates && std::exchange(first, false)) world.api.AddClaimTemplate("rct");
  };
  world.Settle();
  EXPECT_FALSE(first);
  EXPECT_EQ(world.api.workload_statuses().at("train").state, WorkloadState::kFailed);
  EXPECT_THAT(world.api.gangs(), IsEmpty());
  world.api.RemoveClaimTemplate("rct");
  world.Settle();
  EXPECT_EQ(world.api.claim_templates().at("rct").workload, "train");
}

TEST(CoreWorkloadsTest, TheSecondWorkloadWithOneTemplateFails) {
  World world;
  world.api.AddWorkload(Workload());
  world.Settle();
  world.api.AddWorkload(Workload("other", "u-other"));
  world.Settle();
  EXPECT_EQ(world.api.workload_statuses().at("train").state, WorkloadState::kPending);
  const WorkloadStatus& other = world.api.workload_statuses().at("other");
  EXPECT_EQ(other.state, WorkloadState::kFailed);
  EXPECT_THAT(other.conditions.at(0).message,
              HasSubstr("rct was made for NeuronUltraServerWorkload train"));
  EXPECT_FALSE(world.api.gangs().contains("other"));
}

TEST(CoreWorkloadsTest, WhatSomebodyDeletesIsMadeAnew) {
  World world;
  world.api.AddWorkload(Workload());
  world.Settle();
  world.api.RemoveGang("train");
  world.api.RemoveClaimTemplate("rct");
  world.Settle();
  EXPECT_TRUE(world.api.gangs().contains("train"));
  EXPECT_TRUE(world.api.claim_templates().contains("rct"));
}

TEST(CoreWorkloadsTest, AfterAWorkloadNothingIsMade) {
  World world;
  world.api.AddWorkload(Workload());
  world.Settle();
  world.api.RemoveWorkload("train");
  world.api.RemoveGang("train");  // as by the garbage collector
  world.api.RemoveClaimTemplate("rct");
  world.Settle();
  EXPECT_THAT(world.api.gangs(), IsEmpty());
  EXPECT_THAT(world.api.claim_templates(), IsEmpty());
}

TEST(CoreWorkloadsTest, APodThatGetsALabelDependsOnItsTemplateNoMore) {
  World world;
  world.api.AddWorkload(Workload());
  world.api.AddPodOfTemplate("p-0", "rct");
  world.Settle();
  world.api.ChangePod("p-0", [](PodFact& pod) {
    pod.gang = "train";  // by its label, and of the workload as before
    pod.tells_gang = true;
  });
  world.Settle();
  EXPECT_THAT(world.api.conditions().at("p-0"), HasSubstr("1 of 2 pods exist"));
  world.api.DeletePod("p-0");
  world.Settle();
  world.api.RemoveClaimTemplate("rct");
  world.Settle();
  EXPECT_EQ(world.api.claim_templates().at("rct").workload, "train");
  EXPECT_EQ(Ready(world).message, "0 of 2 pods exist");
}

TEST(CoreWorkloadsTest, AnyWriteMayFailOnceInAnyWay) {
  World plain;
  AddWorkloadOfTwo(plain.api);
  std::vector<WriteKind> kinds;
  plain.on_writes = [&](const std::vector<ApiWrite>& writes) {
    for (const ApiWrite& write : writes) kinds.push_back(write.kind());
  };
  plain.Settle();
  for (int failing = 1; failing <= plain.writes; ++failing) {
    for (const Fate fate :
         {Fate::kConflict, Fate::kRefused, Fate::kNotDone, Fate::kAnswerLost, Fate::kLate}) {
      SCOPED_TRACE(failing);
      // To the creation of a Gang a conflict says that the Gang is there.
      const WriteKind kind = kinds.at(static_cast<std::size_t>(failing - 1));
      if (kind == WriteKind::kCreateGang && fate == Fate::kConflict) continue;
      World world;
      AddWorkloadOfTwo(world.api);
      world.fate = [&](int n) { return n == failing ? fate : Fate::kNormal; };
      world.Settle();
      world.MoveTo(world.Time().wall + std::chrono::seconds(60));
      ExpectAllocated(world);
    }
  }
}

TEST(CoreWorkloadsTest, AControllerThatDiesAnywhereGoesOnWhereItWas) {
  World plain;
  AddWorkloadOfTwo(plain.api);
  plain.Settle();
  ASSERT_GT(plain.DoneSteps(), 8);
  for (int crash = 1; crash <= plain.DoneSteps(); ++crash) {
    SCOPED_TRACE(crash);
    World world;
    AddWorkloadOfTwo(world.api);
    world.crash_after = crash;
    world.Settle();
    world.crash_after = 0;
    world.Start();
    world.Settle();
    ExpectAllocated(world);
  }
}

TEST(CoreWorkloadsTest, AStatusIsWrittenOnlyWhenItChanges) {
  World world;
  AddWorkloadOfTwo(world.api);
  world.Settle();
  int writes = 0;
  world.on_writes = [&](const std::vector<ApiWrite>& sent) {
    writes += static_cast<int>(std::ranges::count(sent, WriteKind::kWorkloadStatus,
                                                  [](const ApiWrite& one) { return one.kind(); }));
  };
  world.MoveTo(world.Time().wall + std::chrono::hours(1));
  EXPECT_EQ(writes, 0);
}

}  // namespace
}  // namespace tahoma::controller

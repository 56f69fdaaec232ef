// Pods that ask for devices by the names of extended resources, from the name to the bound pod.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kNeuron[] = "aws.amazon.com/neuron";

void AddSolo(World& world) {
  world.api.AddNode("node-a");
  world.api.AddExtendedClass("chips", kNeuron);
  world.api.AddAskingPod("solo", "", kNeuron, 4);
}

// Each of two members takes more than half of a node.
void AddAskingGang(World& world) {
  world.api.AddNode("node-a");
  world.api.AddNode("node-b");
  world.api.AddExtendedClass("chips", kNeuron);
  world.api.AddGang("train", 2);
  world.api.AddAskingPod("train-0", "train", kNeuron, 10);
  world.api.AddAskingPod("train-1", "train", kNeuron, 10);
}

void ExpectBoundWithOneClaimEach(const World& world) {
  for (const auto& [name, pod] : world.api.pods()) EXPECT_NE(pod.node, "") << name;
  EXPECT_EQ(world.api.claims().size(), world.api.pods().size());
  EXPECT_THAT(world.api.faults, IsEmpty());
}

TEST(CoreExtendedTest, APodThatAsksByNameGetsAClaimAndIsBound) {
  World world;
  AddSolo(world);
  world.Settle();
  ExpectBoundWithOneClaimEach(world);
  const PodFact& pod = world.api.pods().at("solo");
  const ClaimFact& claim = world.api.claims().at(pod.extended_claim->claim);
  EXPECT_TRUE(claim.ReservedFor(pod.uid));
  EXPECT_EQ(claim.spec->requests.at(0).name, pod.extended_claim->mappings.at(0).request);
}

TEST(CoreExtendedTest, AGangWaitsUntilEveryMemberHasItsClaim) {
  World world;
  AddAskingGang(world);
  int refused = 0;  // the number of the first write that makes a claim
  world.on_writes = [&](const std::vector<ApiWrite>& writes) {
    int number = world.writes;
    for (const ApiWrite& write : writes) {
      ++number;
      if (write.kind() == WriteKind::kCreateClaim && refused == 0) refused = number;
      const bool commits =
          write.kind() == WriteKind::kAddFinalizer || write.kind() == WriteKind::kBind;
      if (commits) {
        EXPECT_EQ(world.api.claims().size(), 2U);
      }
    }
  };
  world.fate = [&](int n) { return n == refused ? Fate::kRefused : Fate::kNormal; };
  world.Settle();
  EXPECT_GT(refused, 0);
  ExpectBoundWithOneClaimEach(world);
  EXPECT_NE(world.api.pods().at("train-0").node, world.api.pods().at("train-1").node);
}

TEST(CoreExtendedTest, WithoutAClassAPodWaitsAndIsBoundWhenTheClassComes) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddAskingPod("solo", "", kNeuron, 4);
  world.Settle();
  EXPECT_THAT(world.api.claims(), IsEmpty());
  EXPECT_THAT(world.api.conditions().at("solo"),
              HasSubstr("neither has a DeviceClass spec.extendedResourceName aws.amazon.com"));
  world.api.AddExtendedClass("chips", kNeuron);
  world.Settle();
  ExpectBoundWithOneClaimEach(world);
}

TEST(CoreExtendedTest, WithoutAClassANodeWithADevicePluginServesThePodWithoutAClaim) {
  World world;
  world.api.AddAskingPod("solo", "", kNeuron, 4);
  world.Settle();
  world.api.AddNode("node-a");
  world.api.ChangeNode("node-a", [](NodeFacts& node) {
    node.allocatable = kube::Amounts{{kNeuron, 16}, {"pods", 110}};
  });
  world.Settle();
  EXPECT_EQ(world.api.pods().at("solo").node, "node-a");
  EXPECT_THAT(world.api.claims(), IsEmpty());
}

TEST(CoreExtendedTest, AServerThatDropsTheStatusGetsNoClaimAndThePodSaysWhy) {
  World world;
  AddSolo(world);
  world.api.keeps_extended = false;
  world.Settle();
  EXPECT_EQ(world.api.pods().at("solo").node, "");
  EXPECT_THAT(world.api.claims(), IsEmpty());
  EXPECT_THAT(world.api.conditions().at("solo"), HasSubstr("feature gate DRAExtendedResource"));
  world.api.keeps_extended = true;
  world.MoveTo(world.Time().wall + ClaimMaker::kPause);
  ExpectBoundWithOneClaimEach(world);
}

TEST(CoreExtendedTest, ARefusalIsShownAndTheClaimIsMadeLater) {
  World world;
  AddSolo(world);
  bool refuses = true;
  world.on_writes = [&](const std::vector<ApiWrite>& writes) {
    const bool creates = std::ranges::any_of(
        writes, [](const ApiWrite& write) { return write.kind() == WriteKind::kCreateClaim; });
    world.fate = [&refuses, creates](int) {
      return creates && refuses ? Fate::kRefused : Fate::kNormal;
    };
  };
  world.Settle();
  EXPECT_THAT(world.api.conditions().at("solo"), HasSubstr("refuses the claim"));
  refuses = false;
  world.MoveTo(world.Time().wall + std::chrono::seconds(10));
  ExpectBoundWithOneClaimEach(world);
}

TEST(CoreExtendedTest, AClaimThatSomebodyDeletesIsMadeAnew) {
  World world;
  world.api.AddExtendedClass("chips", kNeuron);
  world.api.AddAskingPod("solo", "", kNeuron, 4);
  world.Settle();
  const std::string name = world.api.pods().at("solo").extended_claim->claim;
  world.api.RemoveClaim(name);
  world.Settle();
  EXPECT_TRUE(world.api.claims().contains(name));
  world.api.AddNode("node-a");
  world.Settle();
  ExpectBoundWithOneClaimEach(world);
}

TEST(CoreExtendedTest, AClaimOfAnotherClassMustBeDeletedBeforeThePodIsPlaced) {
  World world;
  world.api.AddExtendedClass("chips", kNeuron);
  world.api.AddAskingPod("solo", "", kNeuron, 4);
  world.Settle();
  world.api.AddExtendedClass("newer", kNeuron);
  world.api.AddNode("node-a");
  world.Settle();
  EXPECT_EQ(world.api.pods().at("solo").node, "");
  EXPECT_THAT(world.api.conditions().at("solo"), HasSubstr("delete the claim"));
  world.api.RemoveClaim(world.api.pods().at("solo").extended_claim->claim);
  world.Settle();
  ExpectBoundWithOneClaimEach(world);
  EXPECT_EQ(world.api.claims().begin()->second.spec->requests[0].alternatives[0].device_class,
            "newer");
}

TEST(CoreExtendedTest, AGatedPodHasNoClaimUntilItsGatesAreGone) {
  World world;
  AddSolo(world);
  world.api.ChangePod("solo", [](PodFact& pod) { pod.gated = true; });
  world.Settle();
  EXPECT_THAT(world.api.claims(), IsEmpty());
  world.api.ChangePod("solo", [](PodFact& pod) { pod.gated = false; });
  world.Settle();
  ExpectBoundWithOneClaimEach(world);
}

TEST(CoreExtendedTest, AnyWriteMayFailOnceInAnyWay) {
  World plain;
  AddAskingGang(plain);
  plain.Settle();
  for (int failing = 1; failing <= plain.writes; ++failing) {
    for (const Fate fate :
         {Fate::kConflict, Fate::kRefused, Fate::kNotDone, Fate::kAnswerLost, Fate::kLate}) {
      SCOPED_TRACE(failing);
      World world;
      AddAskingGang(world);
      world.fate = [&](int n) { return n == failing ? fate : Fate::kNormal; };
      world.Settle();
      ExpectBoundWithOneClaimEach(world);
    }
  }
}

TEST(CoreExtendedTest, AControllerThatDiesAnywhereMakesNoClaimTwice) {
  World plain;
  AddAskingGang(plain);
  plain.Settle();
  ASSERT_GT(plain.DoneSteps(), 8);
  for (int crash = 1; crash <= plain.DoneSteps(); ++crash) {
    SCOPED_TRACE(crash);
    World world;
    AddAskingGang(world);
    world.crash_after = crash;
    EXPECT_FALSE(world.Settle());
    world.crash_after = 0;
    world.Start();
    world.Settle();
    ExpectBoundWithOneClaimEach(world);
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
  }
}

}  // namespace
}  // namespace tahoma::controller

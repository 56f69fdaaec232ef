// Pods with volumes, from their claims to the node that the provisioner is told.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;

void AddPodWithVolume(World& world) {
  world.api.AddNode("node-a");
  world.api.AddPodWithClaim("solo", "", 4);
  world.api.ChangePod("solo",
                      [](PodFact& pod) { pod.volumes = {{.claim = "data", .ephemeral = false}}; });
}

std::string SelectedNode(const World& world) {
  return world.api.volume_claims().at("data").selected_node;
}

TEST(CoreVolumesTest, APodWaitsForItsClaimAndIsBoundWhenItComes) {
  World world;
  AddPodWithVolume(world);
  world.Settle();
  EXPECT_EQ(world.api.pods().at("solo").node, "");
  EXPECT_THAT(world.api.conditions().at("solo"),
              HasSubstr("persistentvolumeclaim \"data\" not found"));
  world.api.AddVolumeClaim("data");
  world.Settle();
  EXPECT_EQ(world.api.pods().at("solo").node, "node-a");
  EXPECT_EQ(SelectedNode(world), "node-a");
}

TEST(CoreVolumesTest, APodWaitsForTheVolumeOfABoundClaim) {
  World world;
  AddPodWithVolume(world);
  world.api.AddVolumeClaim("data");
  world.api.ChangeVolumeClaim("data", [](VolumeClaimFact& claim) {
    claim.volume = "pv";
    claim.bound = true;
  });
  world.Settle();
  EXPECT_THAT(world.api.conditions().at("solo"), HasSubstr("non-existent persistentvolume \"pv\""));
  world.api.AddVolume({.name = "pv", .nodes = {}});
  world.Settle();
  EXPECT_EQ(world.api.pods().at("solo").node, "node-a");
  EXPECT_EQ(SelectedNode(world), "") << "its volume is there";
}

TEST(CoreVolumesTest, TheNodeIsWrittenAfterARestartToo) {
  World world;
  AddPodWithVolume(world);
  world.api.AddVolumeClaim("data");
  world.Settle();
  world.api.ChangeVolumeClaim("data", [](VolumeClaimFact& claim) { claim.selected_node = ""; });
  world.Start();
  world.Settle();
  EXPECT_EQ(SelectedNode(world), "node-a");
  EXPECT_EQ(world.api.pods().at("solo").node, "node-a");
}

TEST(CoreVolumesTest, AnyWriteMayFailOnceInAnyWay) {
  World plain;
  AddPodWithVolume(plain);
  plain.api.AddVolumeClaim("data");
  plain.Settle();
  for (int failing = 1; failing <= plain.writes; ++failing) {
    for (const Fate fate : {Fate::kConflict, Fate::kRefused, Fate::kNotDone, Fate::kAnswerLost}) {
      World world;
      AddPodWithVolume(world);
      world.api.AddVolumeClaim("data");
      world.fate = [&](int n) { return n == failing ? fate : Fate::kNormal; };
      world.Settle();
      EXPECT_EQ(SelectedNode(world), "node-a") << failing;
    }
  }
}

}  // namespace
}  // namespace tahoma::controller

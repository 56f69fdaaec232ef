// A core whose API server was restored from a backup, with and without a start of the program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using ::testing::IsEmpty;

// After a start of the program beside the restored server: both members of AddGangOfTwo are bound.
void ExpectWholeAfterRestore(World& world, const FakeApi::Backup& backup) {
  world.api.Restore(backup);
  world.Start();
  world.Settle();
  world.api.CheckAtRest();
  EXPECT_THAT(world.api.faults, IsEmpty());
  EXPECT_EQ(BoundPods(world.api), 2);
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 2U);
}

TEST(RestoredApiTest, AnApiRestoredFromAnOlderBackupIsPublishedAgain) {
  for (const bool restart : {false, true}) {
    SCOPED_TRACE(restart);
    World world;
    AddGangOfTwo(world.api);
    const FakeApi::Backup backup = world.api.Save();
    world.Settle();
    const std::string node = world.api.pods().at("train-1").node;
    world.api.Restore(backup);
    if (restart) world.Start();
    world.Settle();
    world.api.CheckAtRest();
    EXPECT_THAT(world.api.faults, IsEmpty());
    EXPECT_EQ(BoundPods(world.api), 2);
    EXPECT_EQ(world.api.pods().at("train-1").node, node);
    EXPECT_EQ(world.core().snapshot()->counters.gangs_prepared, restart ? 0U : 1U);
  }
}

// The defect: the gang that has its chips by now was published beside it.
TEST(RestoredApiTest, AGangThatOnlyTheBackupKnowsMakesRoomForWhoHasItsDevicesNow) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddPodWithClaim("before", "", 16);
  world.Settle();
  world.api.AddPodWithClaim("now", "", 16);
  world.Settle();
  ASSERT_EQ(world.api.pods().at("now").node, "");
  const FakeApi::Backup backup = world.api.Save();
  world.api.FinishPod("before", true);
  world.Settle();
  ASSERT_EQ(world.api.pods().at("now").node, "node-a");
  world.api.Restore(backup);
  world.Start();
  world.fate = [&](int) {
    world.api.CheckDevices();
    return Fate::kNormal;
  };
  world.Settle();
  world.api.CheckAtRest();
  EXPECT_THAT(world.api.faults, IsEmpty());
  EXPECT_EQ(world.api.pods().at("now").node, "node-a");
  EXPECT_FALSE(world.api.pods().contains("before"));
  EXPECT_EQ(EventsOf(world.api, EventReason::kGangUndone), 1);
}

// The defect: the claim stayed allocated for a pod that ran, and its chips were given to others.
TEST(RestoredApiTest, AMemberThatHadEndedSinceTheBackupHoldsItsClaimAgain) {
  World world;
  AddGangOfTwo(world.api);
  world.Settle();
  const FakeApi::Backup backup = world.api.Save();
  world.api.FinishPod("train-1", true);
  world.Settle();
  ASSERT_EQ(world.core().snapshot()->cluster->holding_count(), 1U);
  ExpectWholeAfterRestore(world, backup);
  world.api.FinishPod("train-0", true);
  world.api.FinishPod("train-1", true);
  world.Settle();
  EXPECT_EQ(world.journal.size(), 0U);
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 0U);
}

// The defect: the other member alone was bound again, and the gang stayed a part of itself.
TEST(RestoredApiTest, AMemberThatHadEndedAndThatTheBackupHasUnboundIsBoundWithItsGangAgain) {
  World world;
  AddGangOfTwo(world.api);
  const FakeApi::Backup backup = world.api.Save();
  world.Settle();
  world.api.FinishPod("train-1", true);
  world.Settle();
  ASSERT_EQ(world.core().snapshot()->cluster->holding_count(), 1U);
  ExpectWholeAfterRestore(world, backup);
}

// Made anew by the same names since the backup: the pods of the backup are other ones.
TEST(RestoredApiTest, PodsOfABackupThatWereMadeAnewSinceAreTakenOver) {
  World world;
  AddGangOfTwo(world.api);
  world.Settle();
  const FakeApi::Backup backup = world.api.Save();
  for (const char* pod : {"train-0", "train-1"}) {
    world.api.FinishPod(pod, true);
    world.api.DeletePod(pod);
  }
  world.Settle();
  for (const char* pod : {"train-0", "train-1"}) {
    world.api.RemoveClaim(std::string(pod) + "-chips");
    world.api.AddPodWithClaim(pod, "train", 10);
  }
  world.Settle();
  ASSERT_EQ(BoundPods(world.api), 2);
  world.api.Restore(backup);
  world.Start();
  world.Settle();
  world.api.CheckAtRest();
  EXPECT_THAT(world.api.faults, IsEmpty());
  EXPECT_EQ(world.core().snapshot()->runs_in_flight, 0U);
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(),
            static_cast<std::size_t>(BoundPods(world.api)));
}

}  // namespace
}  // namespace tahoma::controller

// Leaders that follow one another, each with a journal of its own: what one has decided the next
// finds in the API only, and the first knows nothing of it when it leads again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The leader's process is gone, and the one with that journal leads. Returns the journal of the one
// before.
MemoryJournal HandOver(World& world, MemoryJournal journal) {
  MemoryJournal before = std::exchange(world.journal, std::move(journal));
  world.crash_after = 0;
  world.Start();
  return before;
}

// Runs pod "now" on all 16 chips of a node, decided by the leader of this moment, then hands over
// to the first leader again: "now" must go on.
void ExpectLeftAlone(World& world, MemoryJournal first) {
  ASSERT_EQ(world.api.pods().at("now").node, "node-a");
  HandOver(world, std::move(first));
  world.Settle();
  world.api.CheckAtRest();
  EXPECT_THAT(world.api.faults, IsEmpty());
  ASSERT_TRUE(world.api.pods().contains("now")) << "a running pod was deleted";
  EXPECT_EQ(world.api.pods().at("now").node, "node-a");
  EXPECT_EQ(EventsOf(world.api, EventReason::kGangUndone), 0);
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 1U);
}

// The defect: the devices of a gang that had ended since were taken for a living gang's, and the
// gang that runs on them was undone.
TEST(HandoverTest, AGangThatAnotherLeaderPlacedOnDevicesOfAnEndedGangRunsOn) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddPodWithClaim("before", "", 16);
  world.Settle();
  ASSERT_EQ(world.api.pods().at("before").node, "node-a");
  MemoryJournal first = HandOver(world, {});
  world.Settle();
  world.api.FinishPod("before", true);
  world.api.AddPodWithClaim("now", "", 16);
  world.Settle();
  ExpectLeftAlone(world, std::move(first));
}

// The first leader dies at each moment of a commit, the other undoes or ends what it finds, and
// gives the devices to another pod.
TEST(HandoverTest, AGangThatAnotherLeaderPlacedOnDevicesOfAnUnfinishedCommitRunsOn) {
  bool committed = false;
  for (int at = 1; !committed; ++at) {
    ASSERT_LT(at, 100);
    SCOPED_TRACE(at);
    World world;
    world.api.AddNode("node-a");
    world.api.AddPodWithClaim("before", "", 16);
    world.crash_after = at;
    committed = world.Settle();
    MemoryJournal first = HandOver(world, {});
    if (world.api.pods().contains("before")) world.api.DeletePod("before");
    world.Settle();
    world.api.AddPodWithClaim("now", "", 16);
    world.Settle();
    ExpectLeftAlone(world, std::move(first));
  }
}

// The first leader was undoing the gang when it died.
TEST(HandoverTest, AGangThatAnotherLeaderPlacedOnDevicesOfAnUndoneGangRunsOn) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddPodWithClaim("before", "", 16);
  world.fate = [&](int) {
    if (world.api.claims().at("before-chips").allocation == nullptr) return Fate::kNormal;
    if (world.api.pods().contains("before")) world.api.DeletePod("before");
    world.crash_after = 1;  // the next entry is that the gang is undone; no write follows it
    return Fate::kNotDone;
  };
  world.Settle();
  world.fate = [](int) { return Fate::kNormal; };
  MemoryJournal first = HandOver(world, {});
  world.Settle();
  world.api.AddPodWithClaim("now", "", 16);
  world.Settle();
  ExpectLeftAlone(world, std::move(first));
}

// Returns the claims of the pod's decision in the journal.
std::vector<std::string> DecidedClaims(World& world, const std::string& pod) {
  std::vector<std::string> claims;
  TAHOMA_CHECK_OK(world.journal.Load([&](Sequence, std::string_view bytes) {
    const auto record = DecodeRecord(bytes);
    if (!record.ok()) return record.status();
    const auto* prepared = std::get_if<GangPrepared>(&*record);
    if (prepared == nullptr || prepared->decision->pods[0].name != pod) return absl::OkStatus();
    for (const DecidedClaim& claim : prepared->decision->claims) claims.push_back(claim.name);
    return absl::OkStatus();
  }));
  return claims;
}

// The defect: the pod was taken over without the claim, because the gang had it already. The gang
// was undone, and the journal knew nothing of the claim of a pod that ran.
TEST(HandoverTest, APodThatSharesAClaimWithAGangIsTakenOverWithTheClaim) {
  World world;
  world.api.AddNode("node-a");
  world.api.AddClaim("shared", 4);
  world.api.AddGang("train", 2);
  world.api.AddPod("train-0", "train", {"shared"});
  world.api.AddPodWithClaim("train-1", "train", 4);
  world.Settle();
  world.api.AddPod("user", "", {"shared"});
  world.Settle();
  ASSERT_EQ(BoundPods(world.api), 3);
  world.api.DeletePod("train-1");  // so that the next leader finds a part of the gang
  world.api.RemoveClaim("train-1-chips");
  world.api.AddPodWithClaim("train-1", "train", 4);
  HandOver(world, {});
  world.Settle();
  EXPECT_THAT(world.api.faults, IsEmpty());
  EXPECT_FALSE(world.api.pods().contains("train-0")) << "the gang was not undone";
  EXPECT_EQ(world.api.pods().at("user").node, "node-a");
  EXPECT_THAT(DecidedClaims(world, "user"), ElementsAre("shared"));
  world.Start();
  world.api.FinishPod("user", true);
  world.Settle();
  EXPECT_EQ(world.api.claims().at("shared").allocation, nullptr);
  EXPECT_EQ(world.core().snapshot()->cluster->holding_count(), 0U);
  EXPECT_EQ(world.journal.size(), 0U);
}

}  // namespace
}  // namespace tahoma::controller

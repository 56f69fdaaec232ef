// Tests the gang that is read from an API whose writes the journal does not know.

#include "controller/core/commit/published_gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const GangRef kPublished{{"default", "train"}, false};

class PublishedGangTest : public ::testing::Test {
 protected:
  PublishedGangTest() {
    for (int i = 0; i < 3; ++i) {
      PodFact pod;
      pod.key = {"default", fmt::format("train-{}", i)};
      pod.uid = fmt::format("pod-{}", i);
      pod.gang = "train";
      pod.claims = {{"chips", fmt::format("claim-{}", i), false}};
      pods_.push_back(std::move(pod));
      ClaimFact claim;
      claim.key = {"default", fmt::format("claim-{}", i)};
      claim.uid = fmt::format("uid-claim-{}", i);
      claims_.push_back(std::move(claim));
    }
  }
  void Allocate(std::size_t i) {
    auto allocation = std::make_shared<Allocation>();
    allocation->node = fmt::format("node-{}", i);
    claims_[i].allocation = std::move(allocation);
    claims_[i].protected_by_finalizer = true;
    claims_[i].reserved_for = {{"", "pods", pods_[i].key.name, pods_[i].uid}};
  }
  void Bind(std::size_t i, std::uint32_t rank) {
    Allocate(i);
    pods_[i].node = fmt::format("node-{}", i);
    pods_[i].bound_gang_uid = "uid-train";
    pods_[i].bound_rank = rank;
    pods_[i].bound_placement = "us-0 4x4x1+0,0,2";
  }
  std::optional<PublishedGang> Read(bool journal_beside_api = false) {
    Facts facts;
    std::vector<std::shared_ptr<const PodFact>> pods;
    for (const PodFact& pod : pods_) {
      pods.push_back(std::make_shared<const PodFact>(pod));
      facts.pods.Put(pods.back());
    }
    for (const ClaimFact& claim : claims_) {
      facts.claims.Put(std::make_shared<const ClaimFact>(claim));
    }
    if (gang_) facts.gangs.Put(std::make_shared<const GangFact>(*gang_));
    return ReadPublished(kPublished, pods, facts,
                         [this](const ClaimKey& key) { return key.name == in_run_; },
                         {.journal_beside_api = journal_beside_api});
  }

  std::vector<PodFact> pods_;
  std::vector<ClaimFact> claims_;
  std::optional<GangFact> gang_;
  std::string in_run_;
};

TEST_F(PublishedGangTest, NothingIsReadWhereNothingOfOursIsPublished) { EXPECT_FALSE(Read()); }

TEST_F(PublishedGangTest, AGangThatIsWholeIsReadAsItWasDecided) {
  for (std::size_t i = 0; i < 3; ++i) Bind(i, static_cast<std::uint32_t>(2 - i));
  const auto gang = Read();
  ASSERT_TRUE(gang);
  EXPECT_TRUE(gang->any_bound && gang->all_bound && gang->all_held && gang->all_placed);
  const GangDecision& decision = *gang->decision;
  EXPECT_EQ(decision.key, kPublished.key);
  EXPECT_EQ(decision.uid, "uid-train");
  ASSERT_EQ(decision.pods.size(), 3U);
  EXPECT_EQ(decision.pods[0].rank, 2U) << "as published";
  EXPECT_EQ(decision.pods[2].node, "node-2");
  ASSERT_EQ(decision.claims.size(), 3U);
  EXPECT_EQ(decision.claims[1].uid, "uid-claim-1");
  EXPECT_THAT(decision.claims[1].consumers, ElementsAre(1U));
  ASSERT_EQ(decision.slices.size(), 1U);
  EXPECT_EQ(PlacementText(decision.slices[0]), "us-0 4x4x1+0,0,2");
  EXPECT_THAT(decision.slices[0].nodes, ElementsAre("node-0", "node-1", "node-2"));
}

TEST_F(PublishedGangTest, AGangOfABlockIsReadAsOne) {
  Bind(0, 0);
  EXPECT_EQ(Read()->decision->reclaim, std::nullopt);
  pods_[0].bound_reclaim = *ParseTime("2026-11-24T10:30:00Z");
  EXPECT_EQ(Read()->decision->reclaim, pods_[0].bound_reclaim);
  // Anybody may write the annotation: nobody relies on an end that it says.
  EXPECT_EQ(Read()->decision->end, std::nullopt);
}

TEST_F(PublishedGangTest, ACalendarOfTheQueueMakesNoGangOneOfABlock) {
  Bind(0, 0);
  pods_[0].bound_reclaim = *ParseTime("2026-11-24T10:30:00Z");
  for (PodFact& pod : pods_) pod.preemptible = true;
  EXPECT_EQ(Read()->decision->reclaim, std::nullopt);
  pods_[0].bound_reservation = "cr-0123456789abcdef0";
  EXPECT_EQ(Read()->decision->reclaim, pods_[0].bound_reclaim);
}

TEST_F(PublishedGangTest, WhoIsNotBoundGetsARankThatIsLeft) {
  Bind(1, 0);
  const auto gang = Read();
  ASSERT_TRUE(gang);
  EXPECT_TRUE(gang->any_bound);
  EXPECT_FALSE(gang->all_bound || gang->all_held || gang->all_placed);
  EXPECT_EQ(gang->decision->pods[0].rank, 1U);
  EXPECT_EQ(gang->decision->pods[1].rank, 0U);
  EXPECT_EQ(gang->decision->pods[2].rank, 2U);
}

// The defect: a member that was bound after the backup got the first slice, whatever its chips.
TEST_F(PublishedGangTest, WhoIsNotBoundGetsTheSliceOfItsRank) {
  gang_.emplace();
  gang_->key = kPublished.key;
  gang_->members = 3;
  gang_->slices = 3;
  Bind(1, 1);
  pods_[1].bound_slice = 1;
  const auto gang = Read();
  ASSERT_TRUE(gang);
  EXPECT_EQ(gang->decision->pods[0].slice, 0U);
  EXPECT_EQ(gang->decision->pods[1].slice, 1U);
  EXPECT_EQ(gang->decision->pods[2].slice, 2U);
  gang_->members = 4;  // no gang has slices of unequal size
  EXPECT_EQ(Read()->decision->pods[2].slice, 0U);
}

TEST_F(PublishedGangTest, APodThatIsNotBoundGoesWhereItsClaimIsAllocated) {
  for (std::size_t i = 0; i < 3; ++i) Allocate(i);
  const auto gang = Read();
  ASSERT_TRUE(gang);
  EXPECT_TRUE(gang->all_held && gang->all_placed);
  EXPECT_FALSE(gang->any_bound);
  EXPECT_EQ(gang->decision->pods[1].node, "node-1");
  EXPECT_EQ(gang->decision->uid, "pod-0") << "no pod says which gang it was bound for";
}

TEST_F(PublishedGangTest, AFinalizerAloneIsATraceOnlyWhereTheJournalCanBeLostAlone) {
  claims_[0].protected_by_finalizer = true;
  EXPECT_FALSE(Read(true));
  const auto gang = Read(false);
  ASSERT_TRUE(gang);
  EXPECT_EQ(gang->decision->claims.size(), 1U);
  EXPECT_FALSE(gang->all_held);
}

TEST_F(PublishedGangTest, AClaimOfAnotherRunIsSharedWithIt) {
  Allocate(0);
  in_run_ = "claim-0";
  EXPECT_FALSE(Read()) << "nothing is the gang's own";
  Allocate(1);
  const auto gang = Read();
  ASSERT_TRUE(gang);
  ASSERT_EQ(gang->decision->claims.size(), 2U);
  const DecidedClaim& shared = gang->decision->claims[0];
  EXPECT_EQ(shared.name, "claim-0");
  EXPECT_TRUE(shared.allocated_before);
  EXPECT_FALSE(shared.allocation.node.empty());
  EXPECT_THAT(shared.allocation.results, IsEmpty());
  EXPECT_FALSE(gang->decision->claims[1].allocated_before);
}

TEST_F(PublishedGangTest, AReleasedClaimCameBackWhenItIsInUseOrItsPodIsUnbound) {
  auto decision = std::make_shared<GangDecision>();
  decision->key = kPublished.key;
  decision->pods = {{.name = "train-0", .uid = "pod-0", .node = "node-0"}};
  DecidedClaim claim;
  claim.name = "claim-0";
  claim.uid = "uid-claim-0";
  claim.consumers = {0};
  decision->claims = {claim};
  WriteBuffer writes;
  GangRun run(17, decision, writes);
  const auto came_back = [&] {
    Facts facts;
    facts.pods.Put(std::make_shared<const PodFact>(pods_[0]));
    facts.claims.Put(std::make_shared<const ClaimFact>(claims_[0]));
    return CameBack(run, facts);
  };
  Bind(0, 0);
  run.Apply(GangAllocated{17});
  run.Apply(GangBound{17});
  EXPECT_FALSE(came_back()) << "it was never released";
  run.Apply(ClaimReleased{17, 0});
  EXPECT_TRUE(came_back());
  claims_[0].reserved_for.clear();
  EXPECT_FALSE(came_back()) << "bound and ending, without its claim";
  pods_[0].node = "";
  EXPECT_TRUE(came_back()) << "unbound";
  pods_[0].finished = true;
  EXPECT_FALSE(came_back());
}

}  // namespace
}  // namespace tahoma::controller

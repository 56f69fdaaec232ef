#include "controller/core/writes/volume_nodes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace tahoma::controller {
namespace {

const VolumeClaimKey kData{"ml", "data"};

class VolumeNodesTest : public ::testing::Test {
 protected:
  VolumeNodesTest() {
    facts_.storage_classes["ssd"] = std::make_shared<const StorageClassFact>(
        StorageClassFact{.name = "ssd", .waits = true, .provisions = true, .nodes = {}});
    pod_.key = {"ml", "p"};
    pod_.uid = "uid-p";
    pod_.volumes = {{.claim = "data", .ephemeral = false}};
    claim_.key = kData;
    claim_.uid = "uid-data";
    claim_.storage_class = "ssd";
  }
  void SeePod() {
    facts_.pods.Put(std::make_shared<const PodFact>(pod_));
    membership_.OnPod(pod_);
    nodes_.OnPod(pod_);
  }
  void Bind(const std::string& node) {
    pod_.node = node;
    pod_.bound_gang_uid = "uid-gang";
    SeePod();
  }
  void SeeClaim() {
    claim_.resource_version = std::to_string(++version_);
    const auto before = facts_.volume_claims.Find(kData);
    facts_.volume_claims.Put(std::make_shared<const VolumeClaimFact>(claim_));
    nodes_.OnClaim(before.get(), claim_, now_);
  }
  void Select(const std::string& node) {
    claim_.selected_node = node;
    SeeClaim();
  }
  // Returns the writes of a Flush.
  std::vector<ApiWrite> Flush() {
    nodes_.Flush(now_);
    return writes_.DrainWrites();
  }
  void Answer(const ApiWrite& write, WriteOutcome outcome) {
    ApiResult result = ResultOf(write);
    result.outcome = outcome;
    nodes_.OnResult(result, now_);
  }
  // Lets time pass until there is something to do; false: nothing will be.
  bool Wait() {
    const auto wake = nodes_.wake(now_);
    if (wake) now_.monotonic = *wake;
    return wake.has_value();
  }

  Facts facts_;
  GangMembership membership_;
  WriteBuffer writes_;
  VolumeNodes nodes_{facts_, membership_, writes_};
  Now now_{.wall = WallTime(), .monotonic = MonotonicTime(std::chrono::hours(1))};
  PodFact pod_;
  VolumeClaimFact claim_;
  int version_ = 0;
};

TEST_F(VolumeNodesTest, TheNodeOfABoundPodIsWrittenOnce) {
  SeeClaim();
  SeePod();
  EXPECT_TRUE(Flush().empty()) << "the pod has no node yet";
  Bind("node-a");
  const auto writes = Flush();
  ASSERT_EQ(writes.size(), 1U);
  const auto& write = std::get<VolumeNodeWrite>(writes[0].what);
  EXPECT_EQ(write.base->key, kData);
  EXPECT_EQ(write.node, "node-a");
  SeePod();
  EXPECT_TRUE(Flush().empty()) << "the write is under way";
  Answer(writes[0], WriteOutcome::kDone);
  SeePod();
  EXPECT_TRUE(Flush().empty()) << "the watch does not show the annotation yet";
  Select("node-a");
  while (Wait()) EXPECT_TRUE(Flush().empty());
}

TEST_F(VolumeNodesTest, ClaimsThatWaitForNobodyAreLeftAlone) {
  Bind("node-a");
  for (const auto& change : std::vector<void (*)(VolumeClaimFact&)>{
           [](VolumeClaimFact& claim) { claim.bound = true; },
           [](VolumeClaimFact& claim) { claim.lost = true; },
           [](VolumeClaimFact& claim) { claim.deleting = true; },
           [](VolumeClaimFact& claim) { claim.volume = "pv"; },
           [](VolumeClaimFact& claim) { claim.storage_class = "immediate"; },
           [](VolumeClaimFact& claim) { claim.selected_node = "elsewhere"; }}) {
    const VolumeClaimFact before = claim_;
    change(claim_);
    claim_.uid += "x";
    SeeClaim();
    EXPECT_TRUE(Flush().empty());
    claim_ = before;
  }
}

TEST_F(VolumeNodesTest, OnlyALivePodThatWasBoundByUsHasASay) {
  SeeClaim();
  Bind("node-a");
  const PodFact bound = pod_;
  pod_.bound_gang_uid = "";  // somebody else wrote the node
  SeePod();
  EXPECT_TRUE(Flush().empty());
  pod_ = bound;
  pod_.deleting = true;
  SeePod();
  EXPECT_TRUE(Flush().empty());
  pod_ = bound;
  pod_.volumes = {{.claim = "data", .ephemeral = true}};
  SeePod();
  EXPECT_TRUE(Flush().empty()) << "the claim was not made for the pod";
  claim_.owner = pod_.uid;
  SeeClaim();
  EXPECT_EQ(Flush().size(), 1U);
}

TEST_F(VolumeNodesTest, AClaimThatHasChangedIsWrittenAsItIsThen) {
  SeeClaim();
  Bind("node-a");
  const auto writes = Flush();
  SeeClaim();
  Answer(writes.at(0), WriteOutcome::kConflict);
  EXPECT_TRUE(Flush().empty());
  ASSERT_TRUE(Wait());
  const auto again = Flush();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(std::get<VolumeNodeWrite>(again[0].what).base->resource_version, "2");
}

TEST_F(VolumeNodesTest, AClaimForWhichAnotherNodeWasSelectedMeanwhileKeepsThatNode) {
  SeeClaim();
  Bind("node-a");
  const auto writes = Flush();
  Select("node-b");
  Answer(writes.at(0), WriteOutcome::kConflict);
  while (Wait()) EXPECT_TRUE(Flush().empty());
}

TEST_F(VolumeNodesTest, AClaimThatIsGoneIsForgotten) {
  SeeClaim();
  Bind("node-a");
  const auto writes = Flush();
  Answer(writes.at(0), WriteOutcome::kGone);
  facts_.volume_claims.Remove(kData, "");
  nodes_.OnClaimGone(kData);
  while (Wait()) EXPECT_TRUE(Flush().empty());
}

TEST_F(VolumeNodesTest, ARefusedOrLostWriteIsSentAgainAfterLongerAndLongerPauses) {
  SeeClaim();
  Bind("node-a");
  auto writes = Flush();
  const MonotonicTime begin = now_.monotonic;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(writes.size(), 1U);
    Answer(writes[0], i % 2 == 0 ? WriteOutcome::kRefused : WriteOutcome::kUnavailable);
    EXPECT_TRUE(Flush().empty());
    ASSERT_TRUE(Wait());
    writes = Flush();
  }
  EXPECT_GT(now_.monotonic - begin, std::chrono::minutes(1));
}

TEST_F(VolumeNodesTest, AProvisionerThatFailsIsAskedAgainAfterAPause) {
  SeeClaim();
  Bind("node-a");
  for (int i = 0; i < 3; ++i) {
    const auto writes = Flush();
    ASSERT_EQ(writes.size(), 1U);
    Answer(writes[0], WriteOutcome::kDone);
    Select("node-a");
    EXPECT_TRUE(Flush().empty());
    now_.monotonic += std::chrono::minutes(1);
    EXPECT_TRUE(Flush().empty());
    Select("");
    EXPECT_TRUE(Flush().empty());
    now_.monotonic += VolumeNodes::kPause;
  }
}

TEST_F(VolumeNodesTest, AClaimThatIsMadeAgainIsWrittenAtOnce) {
  SeeClaim();
  Bind("node-a");
  Answer(Flush().at(0), WriteOutcome::kDone);
  Select("node-a");
  claim_.uid = "uid-of-the-next";
  Select("");
  EXPECT_EQ(Flush().size(), 1U);
}

}  // namespace
}  // namespace tahoma::controller

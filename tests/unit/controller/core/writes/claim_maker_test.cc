#include "controller/core/writes/claim_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kNeuronChips[] = "aws.amazon.com/neuron";

class ClaimMakerTest : public ::testing::Test {
 protected:
  ClaimMakerTest() {
    AddClass("chips", kNeuronChips);
    pod_.key = {"ml", "p"};
    pod_.uid = "uid-p";
    AddAsk(kNeuronChips);
    See();
  }
  void AddClass(const std::string& name, const std::string& resource) {
    ClassFact added;
    added.name = name;
    added.extended_resource = resource;
    facts_.classes[name] = std::make_shared<const ClassFact>(added);
  }
  void AddAsk(const std::string& resource) {
    std::vector<kube::ExtendedAsk> asks;
    if (pod_.extended_asks != nullptr) asks = *pod_.extended_asks;
    const auto index = static_cast<std::uint32_t>(asks.size());
    asks.push_back({.container = "main",
                    .container_index = 0,
                    .ends_first = false,
                    .resource = resource,
                    .resource_index = index,
                    .count = 2});
    pod_.extended_asks = std::make_shared<const std::vector<kube::ExtendedAsk>>(asks);
  }
  void See() {
    facts_.pods.Put(std::make_shared<const PodFact>(pod_));
    maker_.OnPod(pod_);
  }
  // The pod's status and the claim, as the last writes asked for them.
  void ShowStatus(const ApiWrite& write) {
    pod_.extended_claim = std::get<PodClaimStatusWrite>(write.what).status;
    See();
  }
  void ShowClaim() {
    const auto wished = ExtendedClaimOf(pod_, facts_);
    kube::ResourceClaimSpec spec;
    for (const ExtendedRequest& one : wished->requests) {
      kube::ClaimRequest& request = spec.requests.emplace_back();
      request.name = one.name;
      request.alternatives.resize(1);
      request.alternatives[0].device_class = one.device_class;
      request.alternatives[0].count = one.count;
    }
    ClaimFact claim;
    claim.key = {"ml", wished->status.claim};
    claim.spec = std::make_shared<const kube::ResourceClaimSpec>(std::move(spec));
    facts_.claims.Put(std::make_shared<const ClaimFact>(claim));
  }
  std::vector<ApiWrite> Flush() {
    maker_.Flush(now_);
    return writes_.DrainWrites();
  }
  bool Answer(const ApiWrite& write, WriteOutcome outcome, bool keeps = true) {
    ApiResult result = ResultOf(write);
    result.outcome = outcome;
    result.message = "no quota";
    if (result.kind == WriteKind::kPodClaimStatus && outcome == WriteOutcome::kDone) {
      PodFact shown = pod_;
      if (keeps) shown.extended_claim = std::get<PodClaimStatusWrite>(write.what).status;
      result.pod = std::make_shared<const PodFact>(shown);
    }
    return maker_.OnResult(result, now_);
  }
  std::string Trouble() { return maker_.TroubleOf({"ml", "p"}); }

  Facts facts_;
  WriteBuffer writes_;
  ClaimMaker maker_{facts_, writes_};
  PodFact pod_;
  Now now_{.wall = WallTime(), .monotonic = MonotonicTime(std::chrono::hours(1))};
};

TEST_F(ClaimMakerTest, ThePodIsToldFirstAndTheClaimIsMadeOnceThePodShowsIt) {
  const auto told = Flush();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_FALSE(Answer(told[0], WriteOutcome::kDone));
  EXPECT_THAT(Flush(), IsEmpty());
  ShowStatus(told[0]);
  const auto made = Flush();
  ASSERT_THAT(made, SizeIs(1));
  const auto& creation = std::get<ExtendedClaimCreation>(made[0].what);
  EXPECT_EQ(creation.uid, "uid-p");
  EXPECT_EQ(creation.claim->status, *pod_.extended_claim);
  EXPECT_FALSE(Answer(made[0], WriteOutcome::kDone));
  ShowClaim();
  See();
  EXPECT_THAT(Flush(), IsEmpty());
}

TEST_F(ClaimMakerTest, AStatusThatTheServerDropsIsTroubleAndIsWrittenAgainAfterThePause) {
  EXPECT_TRUE(Answer(Flush().at(0), WriteOutcome::kDone, /*keeps=*/false));
  EXPECT_THAT(Trouble(), HasSubstr("keeps no status.extendedResourceClaimStatus"));
  See();  // other news of the pod
  EXPECT_THAT(Flush(), IsEmpty());
  now_.monotonic += ClaimMaker::kPause;
  const auto again = Flush();
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_TRUE(Answer(again[0], WriteOutcome::kDone));
  EXPECT_EQ(Trouble(), "");
}

TEST_F(ClaimMakerTest, ARefusalIsKeptAndTheWriteIsSentAgain) {
  EXPECT_TRUE(Answer(Flush().at(0), WriteOutcome::kRefused));
  EXPECT_THAT(Trouble(), HasSubstr("refuses to note the claim"));
  ASSERT_TRUE(maker_.wake(now_).has_value());
  now_.monotonic = *maker_.wake(now_);
  const auto told = Flush();
  ASSERT_THAT(told, SizeIs(1));
  Answer(told[0], WriteOutcome::kDone);
  ShowStatus(told[0]);
  EXPECT_TRUE(Answer(Flush().at(0), WriteOutcome::kRefused));
  EXPECT_THAT(Trouble(), HasSubstr("refuses the claim of its extended resources: no quota"));
}

// A quota's conflict is a 409, too: the claim need not exist.
TEST_F(ClaimMakerTest, AfterAConflictTheClaimIsLookedForAndMadeAgain) {
  const auto told = Flush();
  Answer(told.at(0), WriteOutcome::kDone);
  ShowStatus(told[0]);
  EXPECT_FALSE(Answer(Flush().at(0), WriteOutcome::kConflict));
  now_.monotonic = *maker_.wake(now_);
  EXPECT_THAT(Flush(), SizeIs(1));
}

TEST_F(ClaimMakerTest, APodThatIsBoundGoneOrGatedGetsNoClaim) {
  pod_.gated = true;
  See();
  EXPECT_THAT(Flush(), IsEmpty());
  pod_.gated = false;
  pod_.node = "node-a";
  See();
  EXPECT_THAT(Flush(), IsEmpty());
  pod_.node = "";
  See();
  maker_.OnPodGone(pod_.key);
  EXPECT_THAT(Flush(), IsEmpty());
  EXPECT_FALSE(maker_.wake(now_).has_value());
}

TEST_F(ClaimMakerTest, AResourceWithoutAClassWaitsForTheClass) {
  facts_.classes.clear();
  EXPECT_THAT(Flush(), IsEmpty());
  AddClass("chips", kNeuronChips);
  maker_.OnClasses();
  EXPECT_THAT(Flush(), SizeIs(1));
}

// The claim may be allocated already, and its pod be about to be bound.
TEST_F(ClaimMakerTest, AClassThatComesWhileTheClaimExistsChangesNothing) {
  AddAsk("example.com/other");
  See();
  const auto told = Flush();
  Answer(told.at(0), WriteOutcome::kDone);
  ShowStatus(told[0]);
  ShowClaim();
  EXPECT_THAT(Flush(), IsEmpty());
  AddClass("others", "example.com/other");
  maker_.OnClasses();
  EXPECT_THAT(Flush(), IsEmpty());
  facts_.claims.Remove(ClaimKey{"ml", pod_.extended_claim->claim}, "");
  maker_.OnClaimGone(pod_.key);
  const auto anew = Flush();
  ASSERT_THAT(anew, SizeIs(1));
  EXPECT_THAT(std::get<PodClaimStatusWrite>(anew[0].what).status.mappings, SizeIs(2));
}

}  // namespace
}  // namespace tahoma::controller

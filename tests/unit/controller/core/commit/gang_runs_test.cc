// All runs together: their records, their indexes, the devices that they hold, and what is said of
// them. One run, write by write, is in gang_run_test.cc; all of it with failures in core_test.cc.

#include "controller/core/commit/gang_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/support/fake_api.h"
#include "tests/support/memory_journal.h"
#include "tests/unit/controller/core/decisions.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const GangRef kTrainGang{{"default", "train"}, false};
const ClaimKey kClaim0{"default", "train-0-chips"};

class GangRunsTest : public ::testing::Test {
 protected:
  GangRunsTest() {
    for (int i = 0; i < 3; ++i) api_.AddNode(fmt::format("node-{}", i));
    api_.AddGang("train", 2);
    api_.AddPodWithClaim("train-0", "train", 1);
    api_.AddPodWithClaim("train-1", "train", 1);
    Start();
  }
  // A process begins, with the journal of the one before.
  void Start() {
    facts_ = Facts();
    cluster_ = ClusterState();
    buffer_ = JournalBuffer();
    runs_ = std::make_unique<GangRuns>(facts_, cluster_, buffer_, writes_, ReadPublishedOptions{});
    TAHOMA_CHECK_OK(journal_.Load([&](Sequence sequence, std::string_view bytes) {
      const absl::Status known = buffer_.Restore(sequence);
      return known.ok() ? runs_->Restore(sequence, *DecodeRecord(bytes)) : known;
    }));
    api_.Relist();
    Hear();
    runs_->OnSynced();
  }
  // Takes what changed in the API, as Core does.
  void Hear() {
    for (const Command& command : api_.TakeEvents()) {
      if (const auto* pod = std::get_if<PodSeen>(&command)) {
        facts_.pods.Put(pod->pod);
        runs_->OnPod(pod->pod->key);
      } else if (const auto* gone = std::get_if<PodGone>(&command)) {
        facts_.pods.Remove(gone->key, gone->uid);
        runs_->OnPod(gone->key);
      } else if (const auto* claim = std::get_if<ClaimSeen>(&command)) {
        facts_.claims.Put(claim->claim);
        runs_->OnClaim(claim->claim->key);
      } else if (const auto* lost = std::get_if<ClaimGone>(&command)) {
        const auto fact = facts_.claims.Find(lost->key);
        facts_.claims.Remove(lost->key, lost->uid);
        runs_->OnClaimGone(*fact);
      } else if (const auto* node = std::get_if<NodeSeen>(&command)) {
        cluster_.PutNode(node->node);
      }
    }
  }
  // Journals, then carries out and answers every write, until nothing moves.
  void GoOn() {
    for (int i = 0; i < 20; ++i) {
      runs_->Advance(now_);
      TAHOMA_CHECK_OK(journal_.Write(buffer_.DrainBatch()));
      for (const ApiWrite& write : writes_.DrainWrites())
        runs_->OnResult(api_.Execute(write), now_);
      Hear();
    }
  }
  void AdoptPublished() {
    runs_->AdoptPublished(now_);
    TAHOMA_CHECK_OK(journal_.Write(buffer_.DrainBatch()));
    for (const ApiWrite& write : writes_.DrainWrites()) runs_->OnResult(api_.Execute(write), now_);
  }
  std::vector<RunNews::Kind> Kinds() {
    std::vector<RunNews::Kind> kinds;
    for (const RunNews& news : runs_->DrainNews()) {
      EXPECT_EQ(news.gang, kTrainGang);
      if (news.kind != RunNews::Kind::kMoved) kinds.push_back(news.kind);
    }
    return kinds;
  }
  std::uint16_t Busy(const std::string& node) const {
    return cluster_.node(*cluster_.FindNode(node)).BusyChips();
  }

  FakeApi api_;
  Facts facts_;
  ClusterState cluster_;
  MemoryJournal journal_;
  JournalBuffer buffer_;
  WriteBuffer writes_;
  std::unique_ptr<GangRuns> runs_;
  MonotonicTime now_{std::chrono::hours(1)};
};

TEST_F(GangRunsTest, ADecisionIsRecordedAndHoldsItsDevicesBeforeAnythingIsWritten) {
  runs_->Begin(DecisionFor(api_, "train"));
  const JournalBatch batch = buffer_.DrainBatch();
  ASSERT_EQ(batch.put.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<GangPrepared>(*DecodeRecord(batch.put[0].bytes)));
  EXPECT_EQ(Busy("node-0"), 1);
  EXPECT_EQ(Busy("node-1"), 1);
  EXPECT_EQ(runs_->in_flight(), 1U);
  EXPECT_EQ(runs_->room(), GangRuns::kInFlightMost - 1);
  ASSERT_NE(runs_->Find(kTrainGang), nullptr);
  EXPECT_EQ(runs_->Find(kTrainGang)->phase(), RunPhase::kPrepared);
  EXPECT_TRUE(runs_->HasPlace(api_.pods().at("train-0")));
  PodFact other = api_.pods().at("train-0");
  other.uid = "made-again";
  EXPECT_FALSE(runs_->HasPlace(other));
  EXPECT_TRUE(runs_->HasPod(other.key));
}

TEST_F(GangRunsTest, ARunIsInFlightUntilAllItsPodsAreBound) {
  runs_->Begin(DecisionFor(api_, "train"));
  GoOn();
  EXPECT_THAT(Kinds(), ElementsAre(RunNews::Kind::kBound));
  EXPECT_EQ(runs_->in_flight(), 0U);
  EXPECT_EQ(api_.pods().at("train-1").node, "node-1");
  EXPECT_EQ(journal_.size(), 3U) << "prepared, allocated, bound";
}

TEST_F(GangRunsTest, AnEndedRunLeavesNothing) {
  runs_->Begin(DecisionFor(api_, "train"));
  GoOn();
  for (const char* pod : {"train-0", "train-1"}) api_.FinishPod(pod, true);
  api_.RunControllers();
  Hear();
  GoOn();
  EXPECT_EQ(runs_->Find(kTrainGang), nullptr);
  EXPECT_FALSE(runs_->HasPod({"default", "train-0"}));
  EXPECT_EQ(journal_.size(), 0U);
  EXPECT_EQ(cluster_.holding_count(), 0U);
  EXPECT_EQ(buffer_.records(), 5U) << "three of the run, and one for each claim";
}

TEST_F(GangRunsTest, ARunThatFailsSaysWhyAndThenThatNothingIsLeft) {
  runs_->Begin(DecisionFor(api_, "train"));
  runs_->OnNodeGone("node-1");
  GoOn();
  const auto news = runs_->DrainNews();
  ASSERT_FALSE(news.empty());
  EXPECT_EQ(news.front().kind, RunNews::Kind::kUndoing);
  EXPECT_EQ(news.front().reason, "node node-1 is gone");
  EXPECT_TRUE(std::any_of(news.begin(), news.end(), [](const RunNews& one) {
    return one.kind == RunNews::Kind::kUndone && one.gang == kTrainGang;
  }));
  EXPECT_EQ(runs_->in_flight(), 0U);
  EXPECT_EQ(Busy("node-0"), 0);
}

TEST_F(GangRunsTest, ARecordThatIsObsoleteInItsOwnBatchIsNotWritten) {
  runs_->Begin(DecisionFor(api_, "train"));
  buffer_.DrainBatch();
  runs_->Advance(now_);
  for (const char* claim : {"train-0-chips", "train-1-chips"}) api_.RemoveClaim(claim);
  for (const ApiWrite& write : writes_.DrainWrites()) runs_->OnResult(api_.Execute(write), now_);
  Hear();
  runs_->Advance(now_);
  const JournalBatch batch = buffer_.DrainBatch();
  EXPECT_THAT(batch.put, IsEmpty()) << "undoing and released in one step";
  EXPECT_EQ(batch.drop.size(), 2U);
}

TEST_F(GangRunsTest, ARunGoesOnAfterARestart) {
  runs_->Begin(DecisionFor(api_, "train"));
  TAHOMA_CHECK_OK(journal_.Write(buffer_.DrainBatch()));
  Start();
  EXPECT_EQ(runs_->in_flight(), 1U);
  EXPECT_EQ(Busy("node-0"), 1);
  AdoptPublished();
  GoOn();
  EXPECT_THAT(Kinds(), ElementsAre(RunNews::Kind::kBound));
  Start();
  EXPECT_EQ(runs_->in_flight(), 0U);
  EXPECT_EQ(runs_->Find(kTrainGang)->phase(), RunPhase::kBound);
}

TEST_F(GangRunsTest, ABoundGangThatTheJournalDoesNotKnowIsTakenOver) {
  runs_->Begin(DecisionFor(api_, "train"));
  GoOn();
  journal_.Lose();
  Start();
  EXPECT_EQ(runs_->Find(kTrainGang), nullptr);
  AdoptPublished();
  ASSERT_NE(runs_->Find(kTrainGang), nullptr);
  EXPECT_EQ(runs_->Find(kTrainGang)->phase(), RunPhase::kBound);
  EXPECT_THAT(Kinds(), IsEmpty()) << "people were told long ago";
  EXPECT_EQ(journal_.size(), 3U);
}

TEST_F(GangRunsTest, AClaimThatNoRunHasDecidedHoldsWhatTheApiShows) {
  api_.BindByOther("train-0", "train-0-chips", "node-2");
  Hear();
  EXPECT_EQ(Busy("node-2"), 1);
  api_.RemoveClaim("train-0-chips");
  Hear();
  EXPECT_EQ(Busy("node-2"), 0);
}

// A device is given once, whoever writes claims.
TEST_F(GangRunsTest, AClaimThatAnotherAllocatorHasWrittenHoldsItsDevicesAndThoseOfItsRun) {
  runs_->Begin(DecisionFor(api_, "train"));
  api_.BindByOther("train-0", "train-0-chips", "node-2");
  Hear();
  EXPECT_EQ(Busy("node-0"), 1) << "decided, and perhaps under way";
  EXPECT_EQ(Busy("node-2"), 1) << "published";
  GoOn();
  EXPECT_EQ(runs_->Find(kTrainGang), nullptr);
  EXPECT_EQ(Busy("node-0"), 0);
  EXPECT_EQ(Busy("node-1"), 0);
  EXPECT_EQ(Busy("node-2"), 1);
}

TEST_F(GangRunsTest, AClaimThatIsMadeAgainHoldsWhatItHasBesideTheRunOfTheOneBefore) {
  runs_->Begin(DecisionFor(api_, "train"));
  api_.RemoveClaim("train-0-chips");
  api_.AddClaim("train-0-chips", 1);
  api_.BindByOther("train-0", "train-0-chips", "node-2");
  Hear();
  EXPECT_EQ(Busy("node-0"), 1);
  EXPECT_EQ(Busy("node-2"), 1);
  api_.RemoveClaim("train-0-chips");
  Hear();
  EXPECT_EQ(Busy("node-2"), 0);
}

// The first invariant, for whatever has found the place.
TEST_F(GangRunsTest, ADeviceThatIsHeldIsNeverDecidedAgain) {
  runs_->Begin(DecisionFor(api_, "train"));
  api_.AddGang("other", 1);
  api_.AddPodWithClaim("other-0", "other", 1);
  const auto other = DecisionFor(api_, "other");
  EXPECT_DEATH(runs_->Begin(other), "CHECK failed: held.admin_access");
  const auto same = DecisionFor(api_, "other");
  same->claims[0].allocation.results[0].device = "neuron-device-1";
  same->claims[0].allocation.results.push_back(same->claims[0].allocation.results[0]);
  EXPECT_DEATH(runs_->Begin(same), "CHECK failed: given.emplace");
  same->claims[0].allocation.results.pop_back();
  runs_->Begin(same);
  EXPECT_EQ(Busy("node-0"), 3);
}

// The world may show what we never decide.
TEST_F(GangRunsTest, TwoClaimsThatTheApiShowsWithOneDeviceAreBothHeld) {
  for (const char* name : {"one", "two"}) {
    api_.AddPodWithClaim(name, "", 1);
    api_.BindByOther(name, fmt::format("{}-chips", name), "node-2");
  }
  Hear();
  EXPECT_EQ(Busy("node-2"), 1);
  EXPECT_EQ(cluster_.holding_count(), 2U);
  api_.RemoveClaim("one-chips");
  Hear();
  EXPECT_EQ(Busy("node-2"), 1) << "the other has it still";
}

TEST_F(GangRunsTest, AClaimIsBusyWhileItsRunIsBeingCommittedAndSharedOnceItIsBound) {
  EXPECT_EQ(runs_->BusyClaim(kClaim0), "");
  runs_->Begin(DecisionFor(api_, "train"));
  EXPECT_EQ(runs_->BusyClaim(kClaim0), "claim train-0-chips is in use by gang default/train");
  GoOn();
  EXPECT_EQ(runs_->BusyClaim(kClaim0), "");
  EXPECT_EQ(runs_->BusyClaim({"default", "other"}), "");
}

TEST_F(GangRunsTest, ARunWakesWhenItsTimeHasCome) {
  EXPECT_EQ(runs_->wake(), std::nullopt);
  runs_->Begin(DecisionFor(api_, "train"));
  runs_->Advance(now_);
  EXPECT_EQ(runs_->wake(), now_ + GangRun::kCommitTimeout);
  now_ += GangRun::kCommitTimeout;
  runs_->DrainNews();
  runs_->Advance(now_);
  EXPECT_THAT(Kinds(), ElementsAre(RunNews::Kind::kUndoing));
}

TEST_F(GangRunsTest, AJournalWhoseEntriesContradictEachOtherIsRefusedByNumber) {
  const auto restore = [&](const std::vector<Record>& records) {
    JournalBuffer buffer;
    GangRuns runs(facts_, cluster_, buffer, writes_, {});
    Sequence sequence = 7;
    for (const Record& record : records) {
      if (const absl::Status status = runs.Restore(sequence++, record); !status.ok()) {
        EXPECT_TRUE(absl::IsDataLoss(status)) << status;
        return std::string(Message(status));
      }
    }
    return std::string("taken");
  };
  const GangPrepared prepared{DecisionFor(api_, "train")};
  EXPECT_EQ(restore({prepared, GangAllocated{7}, GangBound{7}, ClaimReleased{7, 1}}), "taken");
  EXPECT_EQ(restore({prepared, GangUndoing{7, "why"}}), "taken");
  EXPECT_EQ(restore({prepared, GangAllocated{6}}),
            "journal entry 8 speaks of gang run 6, which is not in the journal");
  EXPECT_EQ(restore({prepared, GangAllocated{7}, GangBound{7}, ClaimReleased{7, 2}}),
            "journal entry 10 releases claim 2 of 2");
  const std::string cannot = "journal entry 8 cannot follow the entries before it of gang run 7";
  EXPECT_EQ(restore({prepared, GangBound{7}}), cannot) << "bound before it was allocated";
  EXPECT_EQ(restore({prepared, ClaimReleased{7, 1}}), cannot);
  EXPECT_THAT(restore({prepared, GangUndoing{7, ""}, GangAllocated{7}}),
              HasSubstr("cannot follow"));
}

TEST_F(GangRunsTest, ARunThatIsEndedOnANodeLosesAllOfItsPodsAndItsDevices) {
  runs_->Begin(DecisionFor(api_, "train"));
  GoOn();
  ASSERT_EQ(runs_->Find(kTrainGang)->phase(), RunPhase::kBound);
  EXPECT_THAT(Kinds(), ElementsAre(RunNews::Kind::kBound));
  runs_->EndOn(*cluster_.FindNode("node-0"), EndCause::kReclaimed,
               "Capacity Block a/b ends: us-0 is taken back");
  for (int i = 0; i < 3; ++i) {
    GoOn();
    api_.RunControllers();
    Hear();
  }
  EXPECT_THAT(Kinds(), ElementsAre(RunNews::Kind::kUndoing, RunNews::Kind::kUndone));
  EXPECT_EQ(runs_->Find(kTrainGang), nullptr);
  EXPECT_TRUE(api_.pods().empty()) << "the pods of the other node, too";
  EXPECT_EQ(Busy("node-0"), 0);
  EXPECT_EQ(Busy("node-1"), 0);
}

TEST_F(GangRunsTest, PodsOfAnEndedRunMustBeGoneByThenAlsoAfterARestart) {
  const auto deletions = [&] {
    runs_->Advance(now_);
    TAHOMA_CHECK_OK(journal_.Write(buffer_.DrainBatch()));
    std::vector<std::optional<WallTime>> by;
    for (const ApiWrite& write : writes_.DrainWrites()) {
      if (const auto* deletion = std::get_if<PodDeletion>(&write.what)) by.push_back(deletion->by);
      runs_->OnResult(api_.Execute(write), now_);
    }
    Hear();
    return by;
  };
  const WallTime by = *ParseTime("2026-11-24T11:30:00Z");
  runs_->Begin(DecisionFor(api_, "train"));
  GoOn();
  runs_->EndOn(*cluster_.FindNode("node-0"), EndCause::kReclaimed, "Capacity Block a/b ends", by);
  EXPECT_THAT(deletions(), ElementsAre(by, by));
  EXPECT_THAT(deletions(), IsEmpty()) << "they are being deleted";
  Start();
  EXPECT_THAT(deletions(), ElementsAre(by, by));
  // Somebody needs the hardware earlier.
  runs_->EndOn(*cluster_.FindNode("node-0"), EndCause::kReclaimed, "another",
               by - std::chrono::hours(1));
  EXPECT_THAT(deletions(), ElementsAre(by - std::chrono::hours(1), by - std::chrono::hours(1)));
  runs_->EndOn(*cluster_.FindNode("node-0"), EndCause::kReclaimed, "a third", by);
  EXPECT_THAT(deletions(), IsEmpty());
  api_.RunControllers();
  Hear();
  GoOn();
  EXPECT_EQ(runs_->Find(kTrainGang), nullptr);
}

// The defect: the gang was ended at once, because the new pod had not been ready for 30 hours.
TEST_F(GangRunsTest, APodThatTakesAPlaceStartsNowEvenWhenTheWallClockWasSetBack) {
  const WallTime now = *ParseTime("2026-11-24T11:30:00Z");
  runs_->MoveTo(now);
  GangFact gang;
  gang.key = kTrainGang.key;
  gang.uid = "uid-train";
  gang.failure_policy = FailurePolicy::kReplace;
  facts_.gangs.Put(std::make_shared<const GangFact>(gang));
  const auto decision = DecisionFor(api_, "train");
  runs_->Begin(decision);
  GoOn();
  api_.FinishPod("train-1", false);
  api_.RunControllers();
  api_.starts_pods = false;
  api_.AddPodWithClaim("train-2", "train", 1);
  Hear();
  GoOn();
  runs_->Replace({.run = runs_->Find(kTrainGang)->id(),
                  .pod = 1,
                  .name = "train-2",
                  .uid = api_.pods().at("train-2").uid,
                  .at = now - std::chrono::hours(30),
                  .claims = {{.index = 1,
                              .name = "train-2-chips",
                              .uid = api_.claims().at("train-2-chips").uid,
                              .allocation = decision->claims[1].allocation}}});
  GoOn();
  ASSERT_NE(runs_->Find(kTrainGang), nullptr);
  EXPECT_EQ(runs_->Find(kTrainGang)->phase(), RunPhase::kBound);
  EXPECT_EQ(runs_->Find(kTrainGang)->starts_at(), now);
  EXPECT_EQ(api_.pods().at("train-2").node, "node-1");
}

TEST_F(GangRunsTest, ASecondRunOfAGangIsAMistakeOfOurs) {
  runs_->Begin(DecisionFor(api_, "train"));
  EXPECT_DEATH(runs_->Begin(DecisionFor(api_, "train")), "CHECK failed: !run_of_gang_.contains");
}

}  // namespace
}  // namespace tahoma::controller

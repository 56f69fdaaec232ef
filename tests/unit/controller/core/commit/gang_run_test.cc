// One gang's commit, write by write: what is sent when, what is recorded first, and that whatever
// fails nothing is left half done.

#include "controller/core/commit/gang_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "controller/core/writes/outbox.h"
#include "lib/base/rng.h"
#include "tests/support/fake_api.h"
#include "tests/unit/controller/core/decisions.h"

namespace tahoma::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Text(const ApiWrite& write) {
  const auto name = [&]() -> std::string {
    switch (write.kind()) {
      case WriteKind::kReadClaim:
        return "read claim";
      case WriteKind::kAddFinalizer:
        return "protect";
      case WriteKind::kAllocate:
        return "allocate";
      case WriteKind::kDeallocate:
        return "deallocate";
      case WriteKind::kRemoveFinalizer:
        return "unprotect";
      case WriteKind::kReadPod:
        return "read pod";
      case WriteKind::kBind:
        return "bind";
      case WriteKind::kDeletePod:
        return "delete";
      default:
        return "?";
    }
  };
  return fmt::format("{} {}", name(), ResultOf(write).index);
}

std::string Text(const Record& record) {
  struct Visitor {
    std::string operator()(const GangPrepared&) const { return "Prepared"; }
    std::string operator()(const GangAllocated&) const { return "Allocated"; }
    std::string operator()(const GangBound&) const { return "Bound"; }
    std::string operator()(const ClaimReleased& r) const {
      return fmt::format("Released {}", r.claim);
    }
    std::string operator()(const MemberReplaced& r) const { return "Replaced " + r.name; }
    std::string operator()(const MemberAdded& r) const { return "Added " + r.name; }
    std::string operator()(const GangUndoing& r) const { return "Undoing: " + r.reason; }
    std::string operator()(const GangReleased&) const { return "Released"; }
  };
  return std::visit(Visitor{}, record);
}

class GangRunTest : public ::testing::Test {
 protected:
  using Outcome = std::function<WriteOutcome(const ApiWrite&)>;

  GangRunTest() {
    api_.AddGang("train", 2);
    api_.AddPodWithClaim("train-0", "train", 1);
    api_.AddPodWithClaim("train-1", "train", 1);
    decision_ = DecisionFor(api_, "train");
    api_.TakeEvents();
    Begin();
  }
  void Begin(RunPhase phase = RunPhase::kPrepared) {
    run_ = std::make_unique<GangRun>(17, decision_, writes_);
    sent_.clear();
    if (phase != RunPhase::kPrepared) run_->Apply(GangAllocated{17});
    if (phase == RunPhase::kBound) run_->Apply(GangBound{17});
  }
  // Records and writes of now, in their order.
  std::vector<std::string> Next() {
    std::vector<std::string> story;
    while (auto record = run_->Next(now_)) {
      for (const ApiWrite& write : writes_.DrainWrites()) Send(write, story);
      story.push_back(Text(*record));
      run_->Apply(*record);
    }
    for (const ApiWrite& write : writes_.DrainWrites()) Send(write, story);
    return story;
  }
  void Send(const ApiWrite& write, std::vector<std::string>& story) {
    story.push_back(Text(write));
    sent_.push_back(write);
  }
  // Carries out what was sent; each is answered as said.
  void Answer(WriteOutcome outcome = WriteOutcome::kDone) {
    Answer([outcome](const ApiWrite&) { return outcome; });
  }
  void Answer(const Outcome& outcome) {
    for (const ApiWrite& write : std::exchange(sent_, {})) {
      ApiResult result = ResultOf(write);
      result.outcome = outcome(write);
      result.message = "injected";
      if (result.outcome == WriteOutcome::kDone) result = api_.Execute(write);
      run_->OnResult(result, now_);
    }
  }
  // Until nothing moves or `until` is the last thing that happened.
  void GoOn(const std::string& until = "") {
    for (int i = 0; i < 30; ++i) {
      const auto story = Next();
      if (story.empty() && sent_.empty()) return;
      if (!story.empty() && story.back() == until) return;
      Answer();
    }
  }
  // Takes the watches' events of pods and claims.
  void Hear() {
    for (std::uint32_t i = 0; i < decision_->pods.size(); ++i) {
      const auto pod = api_.pods().find(decision_->pods[i].name);
      run_->OnPod(i, pod == api_.pods().end() ? nullptr : &pod->second);
      const auto claim = api_.claims().find(decision_->claims[i].name);
      run_->OnClaim(i, claim == api_.claims().end()
                           ? nullptr
                           : std::make_shared<const ClaimFact>(claim->second));
    }
  }
  const PodFact& Pod(std::size_t i) { return api_.pods().at(decision_->pods[i].name); }
  const ClaimFact& Claim(std::size_t i) { return api_.claims().at(decision_->claims[i].name); }

  FakeApi api_;
  std::shared_ptr<GangDecision> decision_;
  std::unique_ptr<GangRun> run_;
  MonotonicTime now_{std::chrono::hours(1)};
  WriteBuffer writes_;
  std::vector<ApiWrite> sent_;
};

TEST_F(GangRunTest, PodsAreBoundAfterEveryClaimIsAllocatedAndThatIsRecorded) {
  EXPECT_THAT(Next(), ElementsAre("read claim 0", "read claim 1"));
  EXPECT_THAT(Next(), IsEmpty()) << "one write to an object at a time";
  Answer();
  EXPECT_THAT(Next(), ElementsAre("protect 0", "protect 1"));
  Answer();
  EXPECT_THAT(Next(), ElementsAre("allocate 0", "allocate 1"));
  EXPECT_EQ(run_->phase(), RunPhase::kPrepared);
  Answer();
  EXPECT_THAT(Next(), ElementsAre("Allocated", "bind 0", "bind 1"));
  EXPECT_EQ(run_->bound_pods(), 0);
  Answer();
  EXPECT_THAT(Next(), ElementsAre("Bound"));
  EXPECT_EQ(run_->bound_pods(), 2);
  EXPECT_EQ(run_->wake(), std::nullopt);
  EXPECT_THAT(api_.faults, IsEmpty());
}

TEST_F(GangRunTest, AClaimThatTheWatchHasToldIsNotReadFirst) {
  Hear();
  EXPECT_THAT(Next(), ElementsAre("protect 0", "protect 1"));
}

TEST_F(GangRunTest, AClaimThatIsProtectedAlreadyNeedsAWriteLess) {
  api_.protects_claims = true;
  api_.AddClaim("train-0-chips", 1);
  decision_->claims[0].uid = api_.claims().at("train-0-chips").uid;
  Begin();
  Hear();
  EXPECT_THAT(Next(), ElementsAre("allocate 0", "protect 1"));
}

TEST_F(GangRunTest, ARunOfAnEarlierProcessReadsEachClaimWhateverTheWatchTells) {
  run_->MarkRestored();
  Hear();
  EXPECT_THAT(Next(), ElementsAre("read claim 0", "read claim 1"));
}

TEST_F(GangRunTest, AConflictIsReadAgainAtOnceAndAFailureAfterPausesThatGrow) {
  Next();
  Answer(WriteOutcome::kConflict);
  EXPECT_THAT(Next(), ElementsAre("read claim 0", "read claim 1"));
  for (const auto pause : {50, 100, 200, 400, 800, 1600, 3200, 5000, 5000}) {
    Answer(WriteOutcome::kUnavailable);
    EXPECT_THAT(Next(), IsEmpty());
    EXPECT_EQ(run_->wake(), now_ + milliseconds(pause));
    now_ += milliseconds(pause);
    EXPECT_THAT(Next(), ElementsAre("read claim 0", "read claim 1"));
  }
}

TEST_F(GangRunTest, AnAnswerThatComesTwiceOrLateChangesNothing) {
  Next();
  const ApiWrite read = sent_[0];
  const ApiResult answer = api_.Execute(read);
  Answer();
  EXPECT_THAT(Next(), ElementsAre("protect 0", "protect 1"));
  run_->OnResult(answer, now_);
  EXPECT_THAT(Next(), IsEmpty()) << "the protection is still under way";
}

TEST_F(GangRunTest, WhatIsRefusedThreeTimesIsTakenBack) {
  Next();
  Answer();
  for (int i = 0; i < GangRun::kRefusalsMost; ++i) {
    Next();
    Answer([](const ApiWrite& write) {
      const bool refused = ResultOf(write).index == 1 && write.kind() != WriteKind::kReadClaim;
      return refused ? WriteOutcome::kRefused : WriteOutcome::kDone;
    });
    now_ += RetryPolicy::kMost;
    Next();
    Answer();
    now_ += RetryPolicy::kMost;
  }
  GoOn();
  EXPECT_EQ(run_->phase(), RunPhase::kReleased);
  EXPECT_EQ(run_->undo_reason(), "injected");
  EXPECT_FALSE(Claim(0).protected_by_finalizer || Claim(0).allocation != nullptr);
  EXPECT_THAT(api_.faults, IsEmpty());
}

TEST_F(GangRunTest, ACommitThatTakesTooLongIsTakenBack) {
  Next();
  EXPECT_EQ(run_->wake(), now_ + GangRun::kCommitTimeout);
  now_ += GangRun::kCommitTimeout;
  EXPECT_THAT(Next(), ElementsAre("Undoing: the API did not take the allocations within 60 "
                                  "seconds"));
}

TEST_F(GangRunTest, AMemberThatVanishesBeforeItsBindUndoesTheGang) {
  Hear();
  GoOn("bind 1");
  api_.DeletePod("train-1");
  Hear();
  EXPECT_THAT(Next(), ElementsAre("Undoing: pod train-1 was deleted")) << "binds are under way";
  Answer();
  EXPECT_THAT(Next(), ElementsAre("delete 0"));
}

TEST_F(GangRunTest, ABindWithoutAnAnswerCountsAsBoundAndItsClaimIsClearedAfterThePod) {
  GoOn("bind 1");
  Answer([](const ApiWrite& write) {
    return ResultOf(write).index == 0 ? WriteOutcome::kUnavailable : WriteOutcome::kGone;
  });
  EXPECT_THAT(Next(), ElementsAre("Undoing: pod train-1 was deleted", "delete 0"));
  Answer();
  EXPECT_THAT(Next(), IsEmpty()) << "it has not ended yet";
  api_.RunControllers();
  Hear();
  EXPECT_THAT(Next(), ElementsAre("deallocate 0", "deallocate 1"));
  GoOn();
  EXPECT_EQ(run_->phase(), RunPhase::kReleased);
  EXPECT_THAT(api_.faults, IsEmpty());
}

TEST_F(GangRunTest, ANodeThatGoesUndoesAGangOnlyWhileAPodOfItIsNotBound) {
  run_->OnNodeGone("node-9");
  EXPECT_THAT(Next(), ElementsAre("read claim 0", "read claim 1"));
  run_->OnNodeGone("node-1");
  EXPECT_THAT(Next(), ElementsAre("Undoing: node node-1 is gone"));
  Begin(RunPhase::kBound);
  run_->OnNodeGone("node-1");
  EXPECT_THAT(Next(), IsEmpty());
}

TEST_F(GangRunTest, AClaimOfSomebodyElseIsNotOverwritten) {
  api_.AddPod("other", "", {});
  api_.BindByOther("other", "train-1-chips", "node-7");
  const auto theirs = Claim(1).allocation;
  Next();
  Answer();
  EXPECT_THAT(Next(), ElementsAre("protect 0",
                                  "Undoing: claim train-1-chips was allocated by "
                                  "someone else"));
  GoOn();
  EXPECT_EQ(run_->phase(), RunPhase::kReleased);
  EXPECT_EQ(Claim(1).allocation, theirs);
}

TEST_F(GangRunTest, NoClaimIsWrittenWhileTheRunIsHeldBack) {
  run_->HoldBack(true);
  Next();
  Answer();
  EXPECT_THAT(Next(), IsEmpty());
  run_->HoldBack(false);
  EXPECT_THAT(Next(), ElementsAre("protect 0", "protect 1"));
  Answer();
  run_->HoldBack(true);
  EXPECT_THAT(Next(), IsEmpty());
  run_->HoldBack(false);
  EXPECT_THAT(Next(), ElementsAre("allocate 0", "allocate 1"));
}

TEST_F(GangRunTest, ClaimsOfABoundGangAreReleasedOneByOneAsTheirPodsEnd) {
  GoOn("Bound");
  api_.FinishPod("train-1", true);
  Hear();
  EXPECT_THAT(Next(), IsEmpty()) << "the claim is still reserved for it";
  api_.RunControllers();
  Hear();
  EXPECT_THAT(Next(), ElementsAre("Released 1"));
  EXPECT_TRUE(run_->claim_released(1) && !run_->claim_released(0));
  api_.FinishPod("train-0", true);
  api_.RunControllers();
  Hear();
  EXPECT_THAT(Next(), ElementsAre("Released 0", "Released"));
}

TEST_F(GangRunTest, AnAnswerOlderThanWhatTheWatchToldIsNotTheLastWord) {
  GoOn("protect 1");
  Answer();
  ASSERT_THAT(Next(), ElementsAre("allocate 0", "allocate 1"));
  std::vector<ApiResult> answers;
  for (const ApiWrite& write : std::exchange(sent_, {})) answers.push_back(api_.Execute(write));
  api_.RemoveClaim("train-1-chips");
  Hear();
  for (const ApiResult& answer : answers) run_->OnResult(answer, now_);
  EXPECT_THAT(Next(), ElementsAre("read claim 1")) << "it was allocated, and is so no more";
  Answer(WriteOutcome::kGone);
  EXPECT_THAT(Next(), ::testing::Contains("Undoing: claim train-1-chips was deleted"));
}

TEST_F(GangRunTest, AClaimWhosePodsHaveEndedIsNotAllocatedAgainByALaterProcess) {
  GoOn("Bound");
  api_.FinishPod("train-0", true);
  api_.RunControllers();
  run_ = std::make_unique<GangRun>(17, decision_, writes_);
  run_->MarkRestored();
  run_->Apply(GangAllocated{17});
  Hear();
  EXPECT_THAT(Next(), ElementsAre("read claim 0", "read claim 1"));
  Answer();
  EXPECT_THAT(Next(), ElementsAre("Bound", "Released 0"));
  EXPECT_EQ(Claim(0).allocation, nullptr);
}

TEST_F(GangRunTest, AClaimWhosePodsHaveEndedKeepsItsDevicesUntilTheApiFreesThem) {
  GoOn("Bound");
  api_.FinishPod("train-0", true);
  run_ = std::make_unique<GangRun>(17, decision_, writes_);
  run_->MarkRestored();
  run_->Apply(GangAllocated{17});
  Hear();
  Next();
  Answer();
  EXPECT_THAT(Next(), ElementsAre("Bound"));
  api_.RunControllers();
  Hear();
  EXPECT_THAT(Next(), ElementsAre("Released 0"));
}

TEST_F(GangRunTest, AGangOfARestoredApiIsBoundAgainOnlyWhenEachOfItsClaimsIs) {
  const FakeApi::Backup backup = api_.Save();
  GoOn("Bound");
  api_.Restore(backup);
  Hear();
  ASSERT_THAT(Next(), ElementsAre("read pod 0", "read pod 1"));
  const ApiWrite late = sent_.back();
  sent_.pop_back();
  Answer();
  EXPECT_THAT(Next(), ElementsAre("read claim 0", "read claim 1"));
  GoOn("bind 0");
  EXPECT_TRUE(Claim(0).ReservedFor(Pod(0).uid) && Claim(1).ReservedFor(Pod(1).uid));
  EXPECT_EQ(sent_.back().kind(), WriteKind::kBind);
  run_->OnResult(api_.Execute(late), now_);
  GoOn();
  EXPECT_EQ(Pod(0).node, decision_->pods[0].node);
  EXPECT_EQ(Pod(1).node, decision_->pods[1].node);
}

TEST_F(GangRunTest, ARecordFollowsOnlyWhereTheLifeOfARunHasIt) {
  const std::vector<Record> records = {
      GangPrepared{decision_}, GangAllocated{17}, GangBound{17},       ClaimReleased{17, 1},
      GangUndoing{17, "why"},  GangReleased{17},  ClaimReleased{17, 2}};
  const auto allowed = [&] {
    std::string text;
    for (const Record& record : records) text += run_->MayApply(record) ? '1' : '0';
    return text;
  };
  EXPECT_EQ(allowed(), "0100100") << "prepared";
  Begin(RunPhase::kAllocated);
  EXPECT_EQ(allowed(), "0010100") << "allocated";
  Begin(RunPhase::kBound);
  EXPECT_EQ(allowed(), "0001110") << "bound";
  run_->Apply(ClaimReleased{17, 1});
  EXPECT_EQ(allowed(), "0000110") << "a claim is released once";
  run_->Apply(GangUndoing{17, "why"});
  EXPECT_EQ(allowed(), "0000010") << "undoing";
  run_->Apply(GangReleased{17});
  EXPECT_EQ(allowed(), "0000000") << "released";
  EXPECT_DEATH(run_->Apply(GangBound{17}), "CHECK failed: MayApply");
}

TEST_F(GangRunTest, ADecisionWhoseClaimNamesAPodThatItLacksIsAMistakeOfOurs) {
  decision_->claims[0].consumers = {2};
  EXPECT_DEATH(GangRun(17, decision_, writes_), "CHECK failed: pod < pods_.size");
}

// Against any mixture of failures: the FakeApi notes every pod that is bound without its claim and
// every claim that is taken from a running pod.
TEST_F(GangRunTest, WhateverFailsTheGangIsWholeOrAbsentInTheEnd) {
  int bound = 0;
  int undone = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed);
    api_ = FakeApi();
    api_.AddPodWithClaim("train-0", "train", 1);
    api_.AddPodWithClaim("train-1", "train", 1);
    decision_ = DecisionFor(api_, "train");
    Begin();
    const bool deletes = rng.Below(2) == 0;
    for (int i = 0; i < 60; ++i) {
      Next();
      if (deletes && i == 3 && api_.pods().contains("train-1")) api_.DeletePod("train-1");
      Answer([&](const ApiWrite& write) {
        const auto fate = i > 20 ? 9 : rng.Below(10);
        if (fate == 0) api_.Execute(write);  // done, and the answer is lost
        return fate < 2    ? WriteOutcome::kUnavailable
               : fate == 2 ? WriteOutcome::kRefused
                           : WriteOutcome::kDone;
      });
      if (rng.Below(2) == 0 || i > 20) Hear();
      if (rng.Below(3) == 0 || i > 20) api_.RunControllers();
      now_ += seconds(6);
    }
    ASSERT_THAT(api_.faults, IsEmpty()) << "seed " << seed;
    if (run_->phase() == RunPhase::kBound) {
      ++bound;
      for (std::size_t i = 0; i < 2; ++i) ASSERT_EQ(Pod(i).node, decision_->pods[i].node) << seed;
    } else {
      ++undone;
      ASSERT_EQ(run_->phase(), RunPhase::kReleased) << "seed " << seed;
      for (std::size_t i = 0; i < 2; ++i) {
        ASSERT_FALSE(Claim(i).protected_by_finalizer || Claim(i).allocation) << seed;
      }
      for (const auto& [name, pod] : api_.pods()) ASSERT_EQ(pod.node, "") << seed;
    }
  }
  EXPECT_GT(bound, 50);
  EXPECT_GT(undone, 50);
}

}  // namespace
}  // namespace tahoma::controller

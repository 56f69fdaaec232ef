// Tests what people are told and when: good news at once, bad news after a grace, nothing twice.

#include "controller/core/writes/status_outbox.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tahoma::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StatusOutboxTest : public ::testing::Test {
 protected:
  StatusOutboxTest() {
    gang_.key = {"default", "train"};
    gang_.uid = "uid-train";
    pod_.key = {"default", "p"};
    pod_.uid = "uid-p";
  }
  static GangStatus Status(GangPhase phase, GangReason reason = GangReason::kNone) {
    GangStatus status;
    status.phase = phase;
    status.reason = reason;
    GangCondition& placed = status.conditions.emplace_back();
    placed.type = ConditionType::kPlaced;
    placed.status = phase == GangPhase::kPending ? ConditionStatus::kFalse : ConditionStatus::kTrue;
    placed.reason = reason;
    placed.message = ToString(reason);
    return status;
  }
  void Pass(std::chrono::nanoseconds by) {
    now_.wall += by;
    now_.monotonic += by;
  }
  // Returns the writes so far: "gang train Pending", "pod p message", "event FailedScheduling
  // message".
  std::vector<std::string> Flush() {
    outbox_.Flush(now_);
    std::vector<std::string> told;
    for (const ApiWrite& write : writes_.DrainWrites()) {
      if (const auto* gang = std::get_if<GangStatusWrite>(&write.what)) {
        told.push_back(fmt::format("gang {} {}", gang->key.name, ToString(gang->status->phase)));
        last_gang_ = write;
      } else if (const auto* pod = std::get_if<PodConditionWrite>(&write.what)) {
        told.push_back("pod " + pod->key.name + " " + pod->message);
        last_pod_ = write;
      } else {
        const auto& event = std::get<EventNote>(write.what);
        told.push_back(fmt::format("event {} {}", event.reason, event.message));
      }
    }
    return told;
  }
  const GangStatusWrite& LastGang() const { return std::get<GangStatusWrite>(last_gang_.what); }
  const PodConditionWrite& LastPod() const { return std::get<PodConditionWrite>(last_pod_.what); }
  void Answer(const ApiWrite& write, WriteOutcome outcome = WriteOutcome::kDone) {
    ApiResult result = ResultOf(write);
    result.outcome = outcome;
    outbox_.OnResult(result, now_);
  }

  WriteBuffer writes_;
  StatusOutbox outbox_{writes_};
  GangFact gang_;
  PodFact pod_;
  Now now_{WallTime(std::chrono::hours(24)), MonotonicTime(std::chrono::hours(1))};
  ApiWrite last_gang_;
  ApiWrite last_pod_;
};

// ---- Gangs -------------------------------------------------------------------------------------

TEST_F(StatusOutboxTest, GoodNewsOfAGangIsToldAtOnce) {
  outbox_.SetGang(gang_, Status(GangPhase::kPlaced), now_);
  EXPECT_THAT(Flush(), ElementsAre("gang train Placed"));
  EXPECT_EQ(LastGang().uid, "uid-train");
  Answer(last_gang_);
  EXPECT_THAT(Flush(), IsEmpty());
  EXPECT_EQ(outbox_.wake(now_), std::nullopt);
}

TEST_F(StatusOutboxTest, AStatusThatSomebodyElseWroteIsPutRight) {
  const auto see = [&](const char* version, std::uint64_t digest) {
    gang_.resource_version = version;
    gang_.shown = digest;
    outbox_.SeeGang(gang_, now_);
  };
  const auto answer = [&](const char* version, std::uint64_t digest) {
    ApiResult result = ResultOf(last_gang_);
    result.resource_version = version;
    result.shown = digest;
    outbox_.OnResult(result, now_);
  };
  see("4", 1);
  outbox_.SetGang(gang_, Status(GangPhase::kPlaced), now_);
  EXPECT_THAT(Flush(), ElementsAre("gang train Placed"));
  answer("6", 60);
  see("5", 50);  // late news
  see("6", 60);
  Pass(seconds(60));
  EXPECT_THAT(Flush(), IsEmpty());
  see("7", 70);
  EXPECT_THAT(Flush(), ElementsAre("gang train Placed"));
  see("8", 80);  // written before ours arrives
  answer("9", 60);
  see("9", 60);
  Pass(seconds(60));
  EXPECT_THAT(Flush(), IsEmpty());
  see("10", 100);
  see("11", 110);
  EXPECT_THAT(Flush(), ElementsAre("gang train Placed"));
  see("13", 130);  // after ours, before its answer
  answer("12", 60);
  EXPECT_THAT(Flush(), ElementsAre("gang train Placed"));
}

TEST_F(StatusOutboxTest, BadNewsThatPassesWithinTheGraceIsNeverTold) {
  outbox_.SetGang(gang_, Status(GangPhase::kPending, GangReason::kWaitingForPods), now_);
  EXPECT_THAT(Flush(), IsEmpty());
  EXPECT_EQ(outbox_.wake(now_), now_.monotonic + StatusOutbox::kGrace);
  Pass(milliseconds(100));
  outbox_.SetGang(gang_, Status(GangPhase::kPlaced), now_);
  EXPECT_THAT(Flush(), ElementsAre("gang train Placed"));
}

TEST_F(StatusOutboxTest, BadNewsThatStaysIsToldAfterTheGraceAndThenSeldom) {
  outbox_.SetGang(gang_, Status(GangPhase::kPending, GangReason::kWaitingForPods), now_);
  Pass(StatusOutbox::kGrace);
  EXPECT_THAT(Flush(), ElementsAre("gang train Pending"));
  Answer(last_gang_);
  Pass(seconds(1));
  outbox_.SetGang(gang_, Status(GangPhase::kPending, GangReason::kWaitingForClaims), now_);
  Pass(StatusOutbox::kGrace);
  EXPECT_THAT(Flush(), IsEmpty()) << "another reason, but told a moment ago";
  Pass(StatusOutbox::kRepeat);
  EXPECT_THAT(Flush(), ElementsAre("gang train Pending"));
  EXPECT_EQ(LastGang().status->reason, GangReason::kWaitingForClaims);
}

TEST_F(StatusOutboxTest, AGangThatIsShownToRunSaysAtOnceThatItDoesNot) {
  outbox_.SetGang(gang_, Status(GangPhase::kRunning), now_);
  EXPECT_THAT(Flush(), ElementsAre("gang train Running"));
  Answer(last_gang_);
  outbox_.SetGang(gang_, Status(GangPhase::kPending, GangReason::kMemberLost), now_);
  EXPECT_THAT(Flush(), ElementsAre("gang train Pending"));
}

TEST_F(StatusOutboxTest, TheSameStatusIsNotWrittenTwice) {
  outbox_.SetGang(gang_, Status(GangPhase::kPlaced), now_);
  Flush();
  Answer(last_gang_);
  outbox_.SetGang(gang_, Status(GangPhase::kPlaced), now_);
  Pass(seconds(60));
  EXPECT_THAT(Flush(), IsEmpty());
}

TEST_F(StatusOutboxTest, AConditionKeepsItsTimeWhileItsStatusStays) {
  outbox_.SetGang(gang_, Status(GangPhase::kPending, GangReason::kWaitingForPods), now_);
  const WallTime first = now_.wall;
  Pass(seconds(10));
  outbox_.SetGang(gang_, Status(GangPhase::kPending, GangReason::kWaitingForClaims), now_);
  EXPECT_EQ(outbox_.GangStatusOf(gang_)->conditions[0].since, first);
  outbox_.SetGang(gang_, Status(GangPhase::kPlaced), now_);
  EXPECT_EQ(outbox_.GangStatusOf(gang_)->conditions[0].since, now_.wall);
}

TEST_F(StatusOutboxTest, NewsThatComesWhileAWriteIsUnderWayFollowsItsAnswer) {
  outbox_.SetGang(gang_, Status(GangPhase::kPlaced), now_);
  Flush();
  outbox_.SetGang(gang_, Status(GangPhase::kRunning), now_);
  EXPECT_THAT(Flush(), IsEmpty()) << "one write at a time";
  Answer(last_gang_);
  EXPECT_THAT(Flush(), ElementsAre("gang train Running"));
}

TEST_F(StatusOutboxTest, AWriteThatFailedIsTriedAgainAndALateAnswerChangesNothing) {
  outbox_.SetGang(gang_, Status(GangPhase::kPlaced), now_);
  Flush();
  const ApiWrite first = last_gang_;
  Answer(first, WriteOutcome::kUnavailable);
  EXPECT_THAT(Flush(), IsEmpty());
  Pass(RetryPolicy::kFirst);
  EXPECT_THAT(Flush(), ElementsAre("gang train Placed"));
  Answer(first);
  Pass(seconds(60));
  EXPECT_THAT(Flush(), IsEmpty()) << "the second is still under way";
  Answer(last_gang_);
  EXPECT_THAT(Flush(), IsEmpty());
}

TEST_F(StatusOutboxTest, AGangThatIsGoneIsForgottenAndOneOfTheSameNameBeginsAnew) {
  outbox_.SetGang(gang_, Status(GangPhase::kPending, GangReason::kWaitingForPods), now_);
  outbox_.ForgetGang(gang_.key);
  EXPECT_EQ(outbox_.GangStatusOf(gang_), nullptr);
  EXPECT_EQ(outbox_.wake(now_), std::nullopt);
  outbox_.ForgetGang(gang_.key);  // twice is once
  outbox_.SetGang(gang_, Status(GangPhase::kPlaced), now_);
  Flush();
  Answer(last_gang_);
  gang_.uid = "uid-second";
  outbox_.SetGang(gang_, Status(GangPhase::kPlaced), now_);
  EXPECT_THAT(Flush(), ElementsAre("gang train Placed"));
  EXPECT_EQ(LastGang().uid, "uid-second");
}

TEST_F(StatusOutboxTest, AnObjectThatIsGoneIsNotWrittenToAgain) {
  outbox_.SetGang(gang_, Status(GangPhase::kPlaced), now_);
  Flush();
  Answer(last_gang_, WriteOutcome::kGone);
  Pass(seconds(60));
  EXPECT_THAT(Flush(), IsEmpty());
}

// ---- Pods --------------------------------------------------------------------------------------

TEST_F(StatusOutboxTest, APodIsToldWhyItWaitsWithAnEvent) {
  outbox_.SetPod(pod_, "no room", now_);
  const WallTime since = now_.wall;
  EXPECT_THAT(Flush(), IsEmpty());
  Pass(StatusOutbox::kGrace);
  EXPECT_THAT(Flush(), ElementsAre("pod p no room", "event FailedScheduling no room"));
  EXPECT_EQ(LastPod().since, since) << "since it began to wait";
  Answer(last_pod_);
  Pass(seconds(1));
  outbox_.SetPod(pod_, "still none", now_);
  Pass(StatusOutbox::kRepeat);
  EXPECT_THAT(Flush(), ElementsAre("pod p still none", "event FailedScheduling still none"));
  EXPECT_EQ(LastPod().since, since);
}

TEST_F(StatusOutboxTest, WhatAFormerControllerWroteIsNotWrittenAgain) {
  pod_.unschedulable_message = "no room";
  outbox_.SetPod(pod_, "no room", now_);
  Pass(seconds(10));
  EXPECT_THAT(Flush(), IsEmpty());
}

TEST_F(StatusOutboxTest, APodThatWaitsNoMoreIsToldNothing) {
  outbox_.SetPod(pod_, "no room", now_);
  outbox_.SetPod(pod_, "", now_);
  Pass(seconds(10));
  EXPECT_THAT(Flush(), IsEmpty());
  EXPECT_EQ(outbox_.wake(now_), std::nullopt);
}

TEST_F(StatusOutboxTest, APodOfTheSameNameIsAnotherPod) {
  outbox_.SetPod(pod_, "no room", now_);
  Pass(StatusOutbox::kGrace);
  Flush();
  pod_.uid = "uid-second";
  outbox_.SetPod(pod_, "no room", now_);
  Answer(last_pod_);  // of the first
  Pass(StatusOutbox::kGrace);
  EXPECT_THAT(Flush(), ElementsAre("pod p no room", "event FailedScheduling no room"));
  EXPECT_EQ(LastPod().uid, "uid-second");
}

TEST_F(StatusOutboxTest, AFailedConditionIsTriedAgain) {
  outbox_.SetPod(pod_, "no room", now_);
  Pass(StatusOutbox::kGrace);
  Flush();
  Answer(last_pod_, WriteOutcome::kUnavailable);
  Pass(RetryPolicy::kFirst);
  EXPECT_EQ(Flush()[0], "pod p no room");
}

TEST_F(StatusOutboxTest, EventsAreToldOnceInTheirOrder) {
  for (const EventReason reason : {EventReason::kGangBlocked, EventReason::kGangPlaced}) {
    EventNote note;
    note.reason = ToString(reason);
    note.message = "m";
    outbox_.Tell(note);
  }
  EXPECT_THAT(Flush(), ElementsAre("event GangBlocked m", "event GangPlaced m"));
  EXPECT_THAT(Flush(), IsEmpty());
}

}  // namespace
}  // namespace tahoma::controller

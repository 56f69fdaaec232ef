// Tests what Queues show and when: changes at once, but a queue's at most once a second, and its
// use of the past once a minute.

#include "controller/core/writes/queue_statuses.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/controller/core/core_world.h"

namespace tahoma::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class QueueStatusesTest : public ::testing::Test {
 protected:
  QueueStatusesTest() {
    spec_.name = "research";
    spec_.uid = "uid-1";
    spec_.generation = 1;
    See("1", 1);
  }
  void See(const std::string& version, std::uint64_t digest) {
    seen_.resource_version = version;
    seen_.digest = digest;
    statuses_.OnQueue(spec_, seen_, now_);
  }
  QueueView View() const {
    QueueView view;
    view.spec = std::make_shared<const QueueSpec>(spec_);
    view.name = spec_.name;
    return view;
  }
  void ShowWaiting(std::int64_t waiting) {
    QueueView view = View();
    view.waiting = waiting;
    statuses_.Show(view, now_);
  }
  void ShowUsed(double hours) {
    QueueView view = View();
    view.used_chip_hours = hours;
    statuses_.Show(view, now_);
  }
  void Pass(std::chrono::nanoseconds by) {
    now_.wall += by;
    now_.monotonic += by;
  }
  // Returns the writes: "research: 3 waiting, 17 chip-hours".
  std::vector<std::string> Flush() {
    statuses_.Flush(now_);
    std::vector<std::string> told;
    for (const ApiWrite& write : writes_.DrainWrites()) {
      const auto& status = std::get<QueueStatusWrite>(write.what);
      told.push_back(fmt::format("{}: {} waiting, {} chip-hours", status.name,
                                 status.status->waiting, status.status->used_chip_hours));
      last_ = write;
    }
    return told;
  }
  const QueueStatusWrite& Last() const { return std::get<QueueStatusWrite>(last_.what); }
  void Answer(WriteOutcome outcome = WriteOutcome::kDone, const std::string& version = "9",
              std::uint64_t digest = 9) {
    ApiResult result = ResultOf(last_);
    result.outcome = outcome;
    result.resource_version = version;
    result.shown = digest;
    statuses_.OnResult(result, now_);
  }

  WriteBuffer writes_;
  QueueStatuses statuses_{writes_};
  QueueSpec spec_;
  QueueShown seen_;
  Now now_{WallTime(std::chrono::hours(24)), MonotonicTime(std::chrono::hours(1))};
  ApiWrite last_;
};

TEST_F(QueueStatusesTest, AChangeIsWrittenAtOnceAndTheNextOneASecondLater) {
  ShowWaiting(1);
  EXPECT_THAT(Flush(), ElementsAre("research: 1 waiting, 0 chip-hours"));
  EXPECT_EQ(Last().uid, "uid-1");
  Answer();
  ShowWaiting(1);
  EXPECT_EQ(statuses_.wake(now_), std::nullopt) << "nothing has changed";
  ShowWaiting(2);
  ShowWaiting(3);
  EXPECT_THAT(Flush(), IsEmpty());
  EXPECT_EQ(statuses_.wake(now_), now_.monotonic + seconds(1));
  Pass(seconds(1));
  EXPECT_THAT(Flush(), ElementsAre("research: 3 waiting, 0 chip-hours"));
}

TEST_F(QueueStatusesTest, AChangeThatIsTakenBackIsNotWritten) {
  ShowWaiting(1);
  Flush();
  Answer();
  ShowWaiting(2);
  ShowWaiting(1);
  Pass(seconds(2));
  EXPECT_THAT(Flush(), IsEmpty());
}

TEST_F(QueueStatusesTest, TheUseOfThePastAloneIsWrittenOnceAMinuteAndWithAnythingElse) {
  ShowUsed(10);
  EXPECT_THAT(Flush(), ElementsAre("research: 0 waiting, 10 chip-hours"));
  Answer();
  ShowUsed(10.4);
  EXPECT_EQ(statuses_.wake(now_), std::nullopt) << "it is shown in whole hours";
  ShowUsed(11);
  EXPECT_EQ(statuses_.wake(now_), now_.monotonic + seconds(60));
  Pass(seconds(30));
  EXPECT_THAT(Flush(), IsEmpty());
  QueueView view = View();
  view.used_chip_hours = 12;
  view.waiting = 1;
  statuses_.Show(view, now_);
  EXPECT_THAT(Flush(), ElementsAre("research: 1 waiting, 12 chip-hours"));
}

TEST_F(QueueStatusesTest, AFailedWriteIsSentAgainAndOneAtATime) {
  for (const WriteOutcome outcome :
       {WriteOutcome::kConflict, WriteOutcome::kRefused, WriteOutcome::kUnavailable}) {
    ShowWaiting(static_cast<std::int64_t>(outcome) + 1);
    Pass(seconds(10));
    EXPECT_EQ(Flush().size(), 1U);
    ShowWaiting(100);
    Pass(seconds(10));
    EXPECT_THAT(Flush(), IsEmpty()) << "one is under way";
    Answer(outcome);
    EXPECT_THAT(Flush(), IsEmpty()) << "after a pause";
    Pass(seconds(10));
    EXPECT_THAT(Flush(), ElementsAre("research: 100 waiting, 0 chip-hours"));
    Answer();
  }
}

TEST_F(QueueStatusesTest, WhatSomebodyElseWroteIsPutRight) {
  ShowWaiting(1);
  Flush();
  Answer(WriteOutcome::kDone, "9", 9);
  See("9", 9);
  Pass(seconds(5));
  EXPECT_THAT(Flush(), IsEmpty());
  See("10", 10);
  EXPECT_THAT(Flush(), ElementsAre("research: 1 waiting, 0 chip-hours"));
}

TEST_F(QueueStatusesTest, AQueueThatIsGoneOrAnotherOneOfItsNameGetsNoOldStatus) {
  const QueueView old = View();
  ShowWaiting(1);
  statuses_.OnQueueGone("research", "uid-0");  // of an earlier one
  EXPECT_EQ(Flush().size(), 1U);
  statuses_.OnQueueGone("research", "uid-1");
  Answer(WriteOutcome::kGone);
  statuses_.Show(old, now_);
  EXPECT_EQ(statuses_.wake(now_), std::nullopt);
  spec_.uid = "uid-2";
  See("20", 20);
  statuses_.Show(old, now_);
  EXPECT_THAT(Flush(), IsEmpty());
  ShowWaiting(7);
  EXPECT_THAT(Flush(), ElementsAre("research: 7 waiting, 0 chip-hours"));
  EXPECT_EQ(Last().uid, "uid-2");
}

TEST_F(QueueStatusesTest, AQueueWithoutAnObjectIsLeftOut) {
  QueueView view;
  view.name = "default";
  view.waiting = 5;
  statuses_.Show(view, now_);
  EXPECT_EQ(statuses_.wake(now_), std::nullopt);
}

TEST_F(QueueStatusesTest, AConditionKeepsItsTimeWhileItsStatusStays) {
  seen_.ready = QueueCondition{.holds = true, .since = WallTime(seconds(5))};
  seen_.stopped = QueueCondition{.holds = true, .since = WallTime(seconds(6))};
  See("2", 2);
  ShowWaiting(1);
  Flush();
  Answer();
  EXPECT_EQ(Last().status->ready_since, WallTime(seconds(5))) << "as it was before a restart";
  EXPECT_EQ(Last().status->stopped_since, WallTime(std::chrono::hours(24)));
  Pass(milliseconds(2500));
  QueueView view = View();
  view.trouble = QueueTrouble::kCircle;
  statuses_.Show(view, now_);
  Flush();
  Answer();
  EXPECT_EQ(Last().status->ready_since, WallTime(std::chrono::hours(24) + seconds(2)));
  Pass(seconds(5));
  view.trouble = QueueTrouble::kNoParent;
  statuses_.Show(view, now_);
  EXPECT_EQ(Flush().size(), 1U);
  EXPECT_EQ(Last().status->ready_since, WallTime(std::chrono::hours(24) + seconds(2)));
}

TEST_F(QueueStatusesTest, NumbersOfAnySizeAreShown) {
  for (const double odd : {-1.0, 1e300, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    QueueView view = View();
    view.used_chip_hours = view.share = view.used_share = odd;
    const QueueStatus status = StatusOf(view);
    EXPECT_GE(status.used_chip_hours, 0);
    EXPECT_GE(status.share_percent, 0);
    EXPECT_LE(status.used_share_percent, 100);
  }
}

// ---- In the core -------------------------------------------------------------------------------

class CoreQueueObjectsTest : public ::testing::Test {
 protected:
  static std::shared_ptr<const QueueSpec> Spec(const std::string& uid, const std::string& invalid) {
    auto spec = std::make_shared<QueueSpec>();
    spec->name = "research";
    spec->uid = uid;
    spec->invalid = invalid;
    return spec;
  }
  // Returns the reasons that Queues show.
  std::vector<std::string> Step(const std::vector<Command>& commands) {
    const auto passed = ++steps_ * std::chrono::seconds(5);
    StepOutput out =
        core_.Step(commands, Now{WallTime(std::chrono::hours(24) + passed), MonotonicTime(passed)});
    std::vector<std::string> reasons;
    for (const ApiWrite& write : out.writes) {
      const auto* status = std::get_if<QueueStatusWrite>(&write.what);
      if (status == nullptr) continue;
      reasons.emplace_back(ToString(status->status->trouble));
      last_ = write;
    }
    return reasons;
  }
  bool Shown() const { return core_.snapshot()->queues.Find(std::string("research")) != nullptr; }

  Core core_{FirstFit};
  int steps_ = 0;
  ApiWrite last_;
};

TEST_F(CoreQueueObjectsTest, AQueueSaysThatItIsReadyOrWhyNot) {
  EXPECT_THAT(Step({QueueSeen{Spec("u", "")}}), IsEmpty()) << "not before all is listed";
  EXPECT_THAT(Step({WatchesSynced{}}), ElementsAre("Ready"));
  EXPECT_TRUE(Shown());
  EXPECT_THAT(Step({ResultOf(last_), QueueSeen{Spec("u", "spec.halfLife: must be more than 0")}}),
              ElementsAre("Invalid"));
  EXPECT_EQ(std::get<QueueStatusWrite>(last_.what).status->message,
            "spec.halfLife: must be more than 0");
  EXPECT_THAT(Step({ResultOf(last_), QueueSeen{Spec("u", "")}}), ElementsAre("Ready"));
}

TEST_F(CoreQueueObjectsTest, AQueueThatIsGoneShowsNothingAndNoneOfAnEarlierUidEndsIt) {
  EXPECT_THAT(Step({WatchesSynced{}, QueueSeen{Spec("u", "")}}), ElementsAre("Ready"));
  Step({QueueGone{"research", "earlier"}});
  EXPECT_TRUE(Shown());
  Step({QueueGone{"research", "u"}});
  EXPECT_FALSE(Shown());
  EXPECT_THAT(Step({QueueSeen{Spec("later", "")}}), ElementsAre("Ready"));
  EXPECT_EQ(std::get<QueueStatusWrite>(last_.what).uid, "later");
}

}  // namespace
}  // namespace tahoma::controller

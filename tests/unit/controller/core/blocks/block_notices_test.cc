// Which pods are told anew when their block takes the hardware back.

#include "controller/core/blocks/block_notices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace tahoma::controller {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const PodKey kNotified{"team-a", "train-0"};
const WallTime kReclaim = *ParseTime("2026-11-24T10:30:00Z");

class BlockNoticesTest : public ::testing::Test {
 protected:
  BlockNoticesTest() {
    Change([](PodFact& pod) {
      pod.key = kNotified;
      pod.uid = "uid-1";
      pod.node = "n0";
      pod.bound_reclaim = kReclaim;
    });
  }
  void Change(const std::function<void(PodFact&)>& change) {
    change(pod_);
    facts_.pods.Put(std::make_shared<const PodFact>(pod_));
  }
  std::vector<ApiWrite> Flush() {
    notices_.Flush(facts_, now_);
    return writes_.DrainWrites();
  }
  void Answer(const ApiWrite& write, WriteOutcome outcome) {
    ApiResult result = ResultOf(write);
    result.outcome = outcome;
    notices_.OnResult(result, now_);
  }
  void Wait(std::chrono::nanoseconds time) {
    now_.wall += time;
    now_.monotonic += time;
  }

  Facts facts_;
  PodFact pod_;
  WriteBuffer writes_;
  BlockNotices notices_{writes_};
  Now now_{kReclaim - 10h, MonotonicTime(100h)};
};

TEST_F(BlockNoticesTest, WhatThePodKnowsIsNotWritten) {
  notices_.Tell(kNotified, "uid-1", kReclaim);
  EXPECT_THAT(Flush(), IsEmpty());
  EXPECT_EQ(notices_.open(), 0U);
  EXPECT_EQ(notices_.wake(now_), std::nullopt);
}

TEST_F(BlockNoticesTest, AnExtensionIsWrittenOnce) {
  notices_.Tell(kNotified, "uid-1", kReclaim + 24h);
  EXPECT_TRUE(notices_.wake(now_).has_value());
  const auto writes = Flush();
  ASSERT_THAT(writes, SizeIs(1));
  const auto& told = std::get<PodReclaimWrite>(writes[0].what);
  EXPECT_EQ(told.uid, "uid-1");
  EXPECT_EQ(told.reclaim, kReclaim + 24h);
  EXPECT_THAT(Flush(), IsEmpty());
  Answer(writes[0], WriteOutcome::kDone);
  EXPECT_THAT(Flush(), IsEmpty());
  EXPECT_EQ(notices_.open(), 0U);
}

TEST_F(BlockNoticesTest, AnExtensionDuringTheWriteFollowsIt) {
  notices_.Tell(kNotified, "uid-1", kReclaim + 24h);
  const auto first = Flush();
  notices_.Tell(kNotified, "uid-1", kReclaim + 48h);
  EXPECT_THAT(Flush(), IsEmpty());
  Answer(first[0], WriteOutcome::kDone);
  const auto second = Flush();
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_EQ(std::get<PodReclaimWrite>(second[0].what).reclaim, kReclaim + 48h);
}

TEST_F(BlockNoticesTest, AWriteWithoutAnAnswerIsSentAgain) {
  notices_.Tell(kNotified, "uid-1", kReclaim + 24h);
  Answer(Flush()[0], WriteOutcome::kUnavailable);
  EXPECT_THAT(Flush(), IsEmpty());
  EXPECT_EQ(notices_.wake(now_), now_.monotonic + RetryPolicy::kFirst);
  Wait(RetryPolicy::kFirst);
  EXPECT_THAT(Flush(), SizeIs(1));
}

TEST_F(BlockNoticesTest, ARefusedWriteAndOneForAPodThatIsGoneAreNot) {
  for (const WriteOutcome outcome :
       {WriteOutcome::kGone, WriteOutcome::kConflict, WriteOutcome::kRefused}) {
    notices_.Tell(kNotified, "uid-1", kReclaim + 24h);
    Answer(Flush()[0], outcome);
    Wait(1h);
    EXPECT_THAT(Flush(), IsEmpty());
  }
}

TEST_F(BlockNoticesTest, APodIsToldAfterItsBinding) {
  Change([](PodFact& pod) { pod.node = ""; });
  notices_.Tell(kNotified, "uid-1", kReclaim + 24h);
  EXPECT_THAT(Flush(), IsEmpty());
  Change([](PodFact& pod) { pod.node = "n0"; });
  Wait(RetryPolicy::kFirst);
  EXPECT_THAT(Flush(), SizeIs(1));
}

TEST_F(BlockNoticesTest, NobodyElseIsTold) {
  notices_.Tell(kNotified, "uid-0", kReclaim + 24h);  // another pod of that name
  notices_.Tell({"team-a", "gone"}, "uid-2", kReclaim + 24h);
  EXPECT_THAT(Flush(), IsEmpty());
  Change([](PodFact& pod) { pod.deleting = true; });
  notices_.Tell(kNotified, "uid-1", kReclaim + 24h);
  EXPECT_THAT(Flush(), IsEmpty());
  EXPECT_EQ(notices_.open(), 0U);
}

TEST_F(BlockNoticesTest, AnAnswerThatComesTwiceIsIgnored) {
  notices_.Tell(kNotified, "uid-1", kReclaim + 24h);
  const auto writes = Flush();
  Answer(writes[0], WriteOutcome::kUnavailable);
  Answer(writes[0], WriteOutcome::kDone);
  Wait(RetryPolicy::kFirst);
  EXPECT_THAT(Flush(), SizeIs(1));
}

}  // namespace
}  // namespace tahoma::controller

// When a write is sent: one at a time for each object, after a failure with pauses that grow.

#include "controller/core/writes/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OutboxTest : public ::testing::Test {
 protected:
  std::vector<std::string> Drain() { return outbox_.DrainDue(now_); }
  void Fail(const std::string& key, std::uint64_t attempt) {
    outbox_.NoteSent(key, attempt);
    ASSERT_TRUE(outbox_.OnAnswer(key, attempt));
    outbox_.OnFailure(key, now_);
  }

  Outbox<std::string> outbox_;
  MonotonicTime now_{std::chrono::hours(1)};
};

TEST_F(OutboxTest, KeysAreDueOnceAndInTheirOrder) {
  EXPECT_EQ(outbox_.wake(now_), std::nullopt);
  for (const char* key : {"b", "a", "b"}) outbox_.Add(key);
  EXPECT_EQ(outbox_.wake(now_), now_);
  EXPECT_THAT(Drain(), ElementsAre("a", "b"));
  EXPECT_THAT(Drain(), IsEmpty());
  EXPECT_EQ(outbox_.wake(now_), std::nullopt);
}

TEST_F(OutboxTest, OfSeveralTimesTheFirstCounts) {
  outbox_.AddAt("a", now_ + seconds(2));
  outbox_.AddAt("a", now_ + seconds(1));
  outbox_.AddAt("a", now_ + seconds(3));
  EXPECT_EQ(outbox_.wake(now_), now_ + seconds(1));
  EXPECT_THAT(Drain(), IsEmpty());
  now_ += seconds(1);
  EXPECT_THAT(Drain(), ElementsAre("a"));
  now_ += seconds(9);
  EXPECT_THAT(Drain(), IsEmpty());
}

TEST_F(OutboxTest, AnObjectHasOneWriteUnderWayAndIsDueAgainWithItsAnswer) {
  outbox_.NoteSent("a", 7);
  EXPECT_TRUE(outbox_.IsInFlight("a"));
  outbox_.Add("a");
  EXPECT_THAT(Drain(), IsEmpty());
  EXPECT_FALSE(outbox_.OnAnswer("a", 6)) << "another attempt";
  EXPECT_FALSE(outbox_.OnAnswer("b", 7)) << "another object";
  EXPECT_TRUE(outbox_.OnAnswer("a", 7));
  outbox_.OnDone("a");
  EXPECT_FALSE(outbox_.OnAnswer("a", 7)) << "an answer that comes twice";
  EXPECT_THAT(Drain(), ElementsAre("a"));
  outbox_.NoteSent("a", 8);
  EXPECT_DEATH(outbox_.NoteSent("a", 9), "CHECK failed");
}

TEST_F(OutboxTest, AnAnswerDoesNotHurryWhatIsDueLater) {
  outbox_.NoteSent("a", 7);
  outbox_.AddAt("a", now_ + seconds(1));
  EXPECT_TRUE(outbox_.OnAnswer("a", 7));
  outbox_.OnDone("a");
  EXPECT_THAT(Drain(), IsEmpty());
  now_ += seconds(1);
  EXPECT_THAT(Drain(), ElementsAre("a"));
}

TEST_F(OutboxTest, AfterAFailureNothingIsSentForAPauseThatGrows) {
  std::uint64_t attempt = 0;
  for (const int pause : {50, 100, 200, 400, 800, 1600, 3200, 5000, 5000}) {
    Fail("a", ++attempt);
    outbox_.Add("a");
    outbox_.AddAt("a", now_);
    EXPECT_TRUE(outbox_.IsHeldBack("a"));
    EXPECT_THAT(Drain(), IsEmpty());
    EXPECT_EQ(outbox_.wake(now_), now_ + milliseconds(pause));
    now_ += milliseconds(pause);
    EXPECT_THAT(Drain(), ElementsAre("a"));
    EXPECT_FALSE(outbox_.IsHeldBack("a"));
  }
  outbox_.NoteSent("a", ++attempt);
  EXPECT_TRUE(outbox_.OnAnswer("a", attempt));
  outbox_.OnDone("a");
  Fail("a", ++attempt);
  EXPECT_EQ(outbox_.wake(now_), now_ + RetryPolicy::kFirst) << "the failures are over";
}

TEST_F(OutboxTest, AnObjectIsHeldBackUntilItsTimeOrNews) {
  outbox_.HoldBack("a", now_ + seconds(30));
  outbox_.HoldBack("b", now_ + seconds(30));
  outbox_.EndHold("b");
  outbox_.EndHold("c");
  outbox_.Add("a");
  outbox_.Add("b");
  EXPECT_THAT(Drain(), ElementsAre("b"));
  now_ += seconds(30);
  EXPECT_THAT(Drain(), ElementsAre("a"));
}

TEST_F(OutboxTest, AnObjectThatIsForgottenHasNoWriteAndNoTime) {
  outbox_.NoteSent("a", 7);
  outbox_.AddAt("a", now_ + seconds(1));
  outbox_.Forget("a");
  outbox_.Forget("a");
  EXPECT_FALSE(outbox_.OnAnswer("a", 7));
  EXPECT_EQ(outbox_.wake(now_), std::nullopt);
}

// The oracle: an object that was added, and is not shown as added, is sent in the end, one write at
// a time.
TEST_F(OutboxTest, WhateverFailsTheNewestIsSentInTheEnd) {
  Rng rng(1);
  std::map<std::string, int> wanted, sent, shown;
  std::map<std::string, std::uint64_t> in_flight;
  std::uint64_t attempts = 0;
  for (int step = 0; step < 20'000; ++step) {
    now_ += milliseconds(rng.Below(100));
    const std::string key = std::to_string(rng.Below(5));
    if (step < 19'000 && rng.Below(2) == 0) {
      ++wanted[key];
      rng.Below(2) == 0 ? outbox_.Add(key) : outbox_.AddAt(key, now_ + milliseconds(80));
    }
    if (in_flight[key] != 0 && rng.Below(2) == 0) {
      ASSERT_TRUE(outbox_.OnAnswer(key, in_flight[key]));
      in_flight[key] = 0;
      if (step < 19'000 && rng.Below(3) == 0) {
        outbox_.OnFailure(key, now_);
      } else {
        outbox_.OnDone(key);
        shown[key] = sent[key];
      }
    }
    for (const std::string& due : Drain()) {
      ASSERT_EQ(in_flight[due], 0U);
      if (shown[due] == wanted[due]) continue;
      sent[due] = wanted[due];
      in_flight[due] = ++attempts;
      outbox_.NoteSent(due, attempts);
    }
  }
  EXPECT_EQ(shown, wanted);
  EXPECT_EQ(outbox_.wake(now_), std::nullopt);
}

}  // namespace
}  // namespace tahoma::controller

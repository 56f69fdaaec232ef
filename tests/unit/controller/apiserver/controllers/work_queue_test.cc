#include "controller/apiserver/controllers/work_queue.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace tahoma::controller::apiserver {
namespace {

using std::chrono::seconds;

TEST(WorkQueueTest, WorkWaitsOnceAndIsNotDoneTwiceAtATime) {
  WorkQueue queue;
  const WallTime now{};
  const Work work{Task::kClaims, "a"};
  queue.Add(work, now);
  queue.Add(work, now);
  EXPECT_EQ(queue.PopDue(now), work);
  EXPECT_EQ(queue.PopDue(now), std::nullopt);
  queue.Add(work, now);
  EXPECT_EQ(queue.PopDue(now), std::nullopt) << "it is being done";
  queue.Done(work, Outcome::kDone, now);
  EXPECT_EQ(queue.PopDue(now), work) << "it was asked for again";
}

TEST(WorkQueueTest, WorkAddedForLaterWhileItIsDoneWaitsUntilThen) {
  WorkQueue queue;
  const WallTime now{};
  const Work work{Task::kNode, "n"};
  queue.Add(work, now);
  queue.PopDue(now);
  queue.Add(work, now + seconds(40));
  queue.Done(work, Outcome::kDone, now);
  EXPECT_EQ(queue.PopDue(now), std::nullopt);
  EXPECT_EQ(queue.NextDue(), now + seconds(40));
  EXPECT_EQ(queue.CountDue(now, 10), 0U);
}

TEST(WorkQueueTest, FailedWorkComesBackLaterAndLater) {
  WorkQueue queue;
  WallTime now{};
  const Work work{Task::kNode, "n"};
  queue.Add(work, now);
  std::chrono::nanoseconds last{0};
  for (int i = 0; i < 12; ++i) {
    ASSERT_EQ(queue.PopDue(now), work);
    queue.Done(work, Outcome::kRetry, now);
    const auto delay = *queue.NextDue() - now;
    EXPECT_GE(delay, last);
    EXPECT_LE(delay, seconds(11));
    EXPECT_EQ(queue.PopDue(now), std::nullopt);
    last = delay;
    now += delay;
  }
}

TEST(WorkQueueTest, CountsWhatIsDueAsFarAsAsked) {
  WorkQueue queue;
  const WallTime now{};
  for (int i = 0; i < 5; ++i) queue.Add({Task::kNode, fmt::format("n{}", i)}, now + seconds(i));
  EXPECT_EQ(queue.CountDue(now - seconds(1), 10), 0U);
  EXPECT_EQ(queue.CountDue(now + seconds(2), 10), 3U);
  EXPECT_EQ(queue.CountDue(now + seconds(2), 2), 2U);
  queue.PopDue(now);
  EXPECT_EQ(queue.CountDue(now + seconds(9), 10), 4U) << "what is being done does not count";
}

TEST(WorkQueueTest, AnEarlierTimeWins) {
  WorkQueue queue;
  const WallTime now{};
  queue.Add({Task::kNode, "n"}, now + seconds(40));
  queue.Add({Task::kNode, "n"}, now);
  queue.Add({Task::kNode, "n"}, now + seconds(40));
  EXPECT_TRUE(queue.PopDue(now).has_value());
  EXPECT_EQ(queue.NextDue(), std::nullopt);
}

}  // namespace
}  // namespace tahoma::controller::apiserver

// Whose turn it is to ask the cluster: a crowd of one address keeps nobody else waiting for long.

#include "controller/access/review_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tahoma::controller {
namespace {

constexpr ReviewTurns::Limits kLimits{.asking = 4,
                                      .asking_of_one = 2,
                                      .waiting = 6,
                                      .waiting_of_one = 6,
                                      .patience = std::chrono::minutes(1)};

class ReviewTurnsTest : public ::testing::Test {
 protected:
  // Asks for a turn in a thread of its own, which keeps it until Finish.
  void Ask(const std::string& caller) {
    callers_.emplace_back([this, caller] {
      const auto turn = turns_.Wait(caller);
      std::unique_lock lock(mutex_);
      order_.push_back(turn.ok() ? caller : "refused " + caller);
      changed_.notify_all();
      changed_.wait(lock, [&] { return finished_ > 0 || over_; });
      --finished_;
    });
  }
  // Lets one of those who have a turn end it.
  void Finish() {
    const std::lock_guard lock(mutex_);
    ++finished_;
    changed_.notify_all();
  }
  void WaitForOrder(std::size_t size) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return order_.size() >= size; });
  }
  std::vector<std::string> Order() {
    const std::lock_guard lock(mutex_);
    return order_;
  }
  ~ReviewTurnsTest() override {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
      changed_.notify_all();
    }
    callers_.clear();
  }

  ReviewTurns turns_{kLimits};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> order_;  // of those who got a turn, or were refused
  int finished_ = 0;
  bool over_ = false;
  std::vector<std::jthread> callers_;
};

TEST_F(ReviewTurnsTest, OneCallerHasAPartOfTheTurnsAndTheOthersNeedNotWait) {
  for (int i = 0; i < 6; ++i) Ask("crowd");
  WaitForOrder(2);
  EXPECT_TRUE(turns_.Wait("else").ok());
  EXPECT_EQ(Order().size(), 2U) << "of the crowd";
}

TEST_F(ReviewTurnsTest, AWaiterGetsATurnWhenAnotherTurnEnds) {
  for (int i = 0; i < 5; ++i) Ask("crowd");
  for (std::size_t had = 2; had < 5; ++had) {
    WaitForOrder(had);
    Finish();
  }
  WaitForOrder(5);
  EXPECT_EQ(Order(), std::vector<std::string>(5, "crowd"));
}

TEST(ReviewTurnsBoundsTest, AWaiterWithoutATurnIsRefusedInTime) {
  ReviewTurns turns({.asking = 1,
                     .asking_of_one = 1,
                     .waiting = 1,
                     .waiting_of_one = 1,
                     .patience = std::chrono::milliseconds(1)});
  const auto first = turns.Wait("a");
  EXPECT_EQ(turns.Wait("a").status().code(), absl::StatusCode::kUnavailable) << "late";
}

TEST(ReviewTurnsBoundsTest, ANewcomerTakesTheLastPlaceOfTheCallerWithMost) {
  ReviewTurns turns({.asking = 1,
                     .asking_of_one = 1,
                     .waiting = 3,
                     .waiting_of_one = 3,
                     .patience = std::chrono::minutes(1)});
  auto first = *turns.Wait("crowd");
  std::atomic<int> refused = 0;
  std::vector<std::jthread> crowd;
  for (int i = 0; i < 4; ++i) {
    crowd.emplace_back([&] { refused += turns.Wait("crowd").ok() ? 0 : 1; });
  }
  while (refused < 1) std::this_thread::yield();  // three wait
  std::jthread newcomer([&] {
    const auto turn = turns.Wait("newcomer");
    EXPECT_TRUE(turn.ok()) << turn.status();
  });
  while (refused < 2) std::this_thread::yield();
  first.reset();
}

}  // namespace
}  // namespace tahoma::controller

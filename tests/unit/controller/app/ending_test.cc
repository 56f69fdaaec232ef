#include "controller/app/ending.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

namespace tahoma::controller {
namespace {

// In a process of its own, begun anew: a fork of one that has threads, as tests before this one
// leave them, is half a process, in which ThreadSanitizer keeps signals back for ever.
TEST(EndingTest, AProcessThatHangsIsEndedInTime) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto hang = [] {
    EndWithin(std::chrono::seconds(1));
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock(mutex);
    never.wait(lock, [] { return false; });
  };
  EXPECT_EXIT(hang(), ::testing::ExitedWithCode(1), "something hangs, so it ends");
}

}  // namespace
}  // namespace tahoma::controller

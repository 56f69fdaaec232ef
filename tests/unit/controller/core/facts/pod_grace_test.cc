// The grace of a pod whose hardware is taken back.

#include "controller/core/facts/pod_grace.h"

#include <gtest/gtest.h>

namespace tahoma::controller {
namespace {

using namespace std::chrono_literals;

std::optional<std::int64_t> Grace(std::chrono::nanoseconds left, std::int64_t own) {
  const WallTime now = *ParseTime("2026-11-25T18:00:00Z");
  return GraceUntil(now + left, now, own);
}

TEST(PodGraceTest, APodThatEndsInTimeKeepsItsOwn) {
  EXPECT_EQ(Grace(1h, 30), std::nullopt);
  EXPECT_EQ(Grace(1h, 59 * 60), std::nullopt);
  EXPECT_EQ(Grace(1h, 0), std::nullopt);
}

TEST(PodGraceTest, ALongerOneEndsBeforeTheHardwareIsSomebodyElses) {
  EXPECT_EQ(Grace(1h, 3600), 59 * 60);
  EXPECT_EQ(Grace(30min, 3600), 29 * 60);
  EXPECT_EQ(Grace(10min, 3600), 9 * 60 + 30);
  EXPECT_EQ(Grace(2500ms, 30), 2);
}

TEST(PodGraceTest, IsNeverLessThanASecondHoweverLateItIs) {
  EXPECT_EQ(Grace(1s, 30), 1);
  EXPECT_EQ(Grace(0s, 30), 1);
  EXPECT_EQ(Grace(-5h, 30), 1);
}

}  // namespace
}  // namespace tahoma::controller

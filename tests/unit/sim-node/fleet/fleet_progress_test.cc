// Tests what a fleet says in the log.

#include "sim-node/fleet/fleet_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr MonotonicTime kStart{seconds(50)};

std::vector<std::string> Say(FleetProgress& progress, MonotonicTime now) {
  std::vector<std::string> said;
  for (const FleetProgress::Line& line : progress.Tell(now)) {
    said.push_back((line.warning ? "W " : "I ") + line.text);
  }
  return said;
}

TEST(FleetProgressTest, LogsProgressEveryFiveSecondsAndTheEndOnce) {
  FleetProgress progress(30, seconds(10), kStart);
  for (int i = 0; i < 10; ++i) progress.CountEnsured(true, 5);
  EXPECT_THAT(Say(progress, kStart + milliseconds(4'900)), IsEmpty());
  EXPECT_THAT(Say(progress, kStart + seconds(5)),
              ElementsAre("I published 10 of 30 nodes, 10 ResourceSlices/s"));
  EXPECT_THAT(Say(progress, kStart + seconds(6)), IsEmpty());
  for (int i = 0; i < 20; ++i) progress.CountEnsured(true, 5);
  EXPECT_THAT(Say(progress, kStart + seconds(7)),
              ElementsAre("I all 30 nodes are published, with 150 ResourceSlices, after 7.0 s"));
  EXPECT_TRUE(progress.is_complete());
  progress.CountEnsured(false, 5);
  EXPECT_THAT(Say(progress, kStart + seconds(700)), IsEmpty());
  EXPECT_EQ(progress.counts().slices, 150U) << "looked at again, not published again";
}

TEST(FleetProgressTest, TellsOfFailuresAtOnceAndThenEveryHalfMinute) {
  FleetProgress progress(1, seconds(10), kStart);
  progress.CountFailure(Unavailable("fleet-00000: connection refused"));
  EXPECT_THAT(
      Say(progress, kStart),
      ElementsAre(
          "W tasks that failed and are tried again: 1; the last: fleet-00000: connection refused"));
  progress.CountFailure(Unavailable("a"));
  progress.CountFailure(Unavailable("b"));
  EXPECT_THAT(Say(progress, kStart + milliseconds(4'999)), IsEmpty());
  progress.CountEnsured(true, 1);
  EXPECT_THAT(Say(progress, kStart + seconds(30)),
              ElementsAre("I all 1 nodes are published, with 1 ResourceSlices, after 30.0 s",
                          "W tasks that failed and are tried again: 2; the last: b"));
  EXPECT_THAT(Say(progress, kStart + seconds(90)), IsEmpty()) << "nothing has failed since";
}

TEST(FleetProgressTest, ReportsLateLeasesAndTheRemedy) {
  FleetProgress progress(1, seconds(10), kStart);
  progress.CountEnsured(true, 1);
  progress.CountRenewal(seconds(10));
  EXPECT_EQ(Say(progress, kStart).size(), 1U) << "a period is not too late";
  progress.CountRenewal(seconds(23));
  progress.CountRenewal(seconds(2));
  const auto said = Say(progress, kStart + seconds(1));
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], HasSubstr("W leases are renewed up to 23 s late"));
  EXPECT_THAT(said[0], HasSubstr("give fleetNodes.leasePeriod more"));
  EXPECT_EQ(progress.counts().renewals, 3U);
  EXPECT_THAT(Say(progress, kStart + seconds(60)), IsEmpty());
}

TEST(FleetProgressTest, AServerThatWasAwayIsNotCalledSlow) {
  FleetProgress progress(1, seconds(10), kStart);
  progress.CountEnsured(true, 1);
  EXPECT_EQ(Say(progress, kStart).size(), 1U);
  progress.CountFailure(Unavailable("refused"));
  progress.CountRenewal(seconds(50));
  EXPECT_THAT(Say(progress, kStart), ElementsAre(HasSubstr("tried again: 1; the last: refused")));
  EXPECT_THAT(Say(progress, kStart + seconds(60)), IsEmpty());
}

}  // namespace
}  // namespace tahoma::sim

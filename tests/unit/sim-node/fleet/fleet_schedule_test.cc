// Tests what is due when for which node of a fleet.

#include "sim-node/fleet/fleet_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr MonotonicTime kStart{seconds(1000)};

// Everything that is due, finished at once.
std::vector<FleetTask> RunAll(FleetSchedule& schedule, MonotonicTime now) {
  std::vector<FleetTask> done;
  while (const auto task = schedule.PopDue(now)) {
    schedule.Finish(*task, now);
    done.push_back(*task);
  }
  return done;
}

TEST(FleetScheduleTest, EveryNodeIsEnsuredAtOnceInTheOrderOfItsIndex) {
  FleetSchedule schedule({.nodes = 100}, kStart);
  EXPECT_EQ(schedule.next(), kStart);
  const auto done = RunAll(schedule, kStart);
  ASSERT_EQ(done.size(), 100U);
  for (std::uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(done[i].node, i);
    EXPECT_EQ(done[i].work, FleetWork::kEnsure);
    EXPECT_TRUE(done[i].first);
  }
  EXPECT_EQ(schedule.ensured(), 100U);
}

TEST(FleetScheduleTest, ATaskIsGivenOnceUntilItIsFinished) {
  FleetSchedule schedule({.nodes = 1}, kStart);
  const auto task = schedule.PopDue(kStart);
  ASSERT_TRUE(task);
  EXPECT_FALSE(schedule.PopDue(kStart + minutes(60)));
  EXPECT_FALSE(schedule.next()) << "all tasks are under way";
  schedule.PutBack(*task, kStart + seconds(5));
  EXPECT_EQ(schedule.next(), kStart + seconds(5));
  EXPECT_FALSE(schedule.PopDue(kStart + seconds(4)));
  const auto again = schedule.PopDue(kStart + seconds(5));
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->first) << "it has not been made yet";
  EXPECT_EQ(schedule.ensured(), 0U);
}

TEST(FleetScheduleTest, RenewalsComeBeforeNodesThatAreStillToBeMade) {
  FleetSchedule schedule({.nodes = 50, .lease_period = seconds(10)}, kStart);
  for (int i = 0; i < 25; ++i) schedule.Finish(*schedule.PopDue(kStart), kStart);
  const MonotonicTime later = kStart + seconds(10);
  std::vector<FleetTask> done;
  for (int i = 0; i < 25; ++i) {
    const auto task = schedule.PopDue(later);
    EXPECT_EQ(task->work, FleetWork::kRenewLease);
    EXPECT_EQ(task->silent, seconds(10));
    done.push_back(*task);
  }
  EXPECT_EQ(schedule.PopDue(later)->work, FleetWork::kEnsure);
}

// However the nodes came to be: in every tenth of a period a tenth of the leases is renewed, give
// or take a few, and each lease once in each period.
TEST(FleetScheduleTest, RenewalsAreSpreadOverThePeriodAndNoneIsLeftOut) {
  constexpr std::uint32_t kNodes = 1000;
  FleetSchedule schedule({.nodes = kNodes, .lease_period = seconds(10)}, kStart);
  RunAll(schedule, kStart);
  for (int period = 0; period < 3; ++period) {
    std::map<std::uint32_t, int> renewed;
    for (int tenth = 1; tenth <= 10; ++tenth) {
      const MonotonicTime now = kStart + seconds(10 * period + tenth);
      const auto done = RunAll(schedule, now);
      const auto renewals = std::count_if(done.begin(), done.end(), [](const FleetTask& task) {
        return task.work == FleetWork::kRenewLease;
      });
      EXPECT_NEAR(static_cast<double>(renewals), 100, 5) << period << " " << tenth;
      for (const FleetTask& task : done) {
        if (task.work == FleetWork::kRenewLease) ++renewed[task.node];
      }
    }
    // In the first period a node whose moment has just passed comes with the next one.
    if (period > 0) {
      EXPECT_EQ(renewed.size(), kNodes);
    }
    for (const auto& [node, times] : renewed) EXPECT_LE(times, 1) << node;
  }
}

// An oracle that knows nothing of heaps: after any history no lease waits longer than its period
// plus what the caller itself was late by, and every node is looked at again within two periods.
TEST(FleetScheduleTest, NoNodeIsForgottenWhateverTasksFailOrAreSlow) {
  Rng rng(7);
  for (int round = 0; round < 30; ++round) {
    const auto nodes = static_cast<std::uint32_t>(1 + rng.Below(40));
    FleetSchedule schedule(
        {.nodes = nodes, .lease_period = seconds(10), .resync_period = seconds(60)}, kStart);
    std::map<std::uint32_t, MonotonicTime> renewed;
    std::map<std::uint32_t, MonotonicTime> ensured;
    std::set<std::pair<std::uint32_t, FleetWork>> open;
    std::vector<FleetTask> under_way;
    MonotonicTime now = kStart;
    for (int step = 0; step < 2000; ++step) {
      now += milliseconds(rng.Below(200));
      if (const auto task = schedule.PopDue(now)) {
        ASSERT_TRUE(open.emplace(task->node, task->work).second) << "it is under way already";
        under_way.push_back(*task);
      }
      if (under_way.empty() || rng.Chance(1, 3)) continue;
      const FleetTask task = under_way.front();
      under_way.erase(under_way.begin());
      open.erase({task.node, task.work});
      if (rng.Chance(1, 8)) {
        schedule.PutBack(task, now + milliseconds(rng.Below(3000)));
        continue;
      }
      if (task.work == FleetWork::kRenewLease) {
        EXPECT_EQ(task.first, false);
        EXPECT_TRUE(renewed.contains(task.node)) << "a lease of a node that was never made";
      } else {
        EXPECT_EQ(task.first, !ensured.contains(task.node));
        ensured[task.node] = now;
      }
      if (task.work == FleetWork::kRenewLease || task.first) renewed[task.node] = now;
      schedule.Finish(task, now);
    }
    // Then nothing fails any more.
    for (const FleetTask& task : under_way) schedule.Finish(task, now);
    for (int i = 0; i < 12; ++i) {
      now += seconds(10);
      for (const FleetTask& task : RunAll(schedule, now)) {
        (task.work == FleetWork::kRenewLease ? renewed : ensured)[task.node] = now;
        if (task.first) renewed[task.node] = now;
      }
      if (i < 2) continue;
      for (std::uint32_t node = 0; node < nodes; ++node) {
        EXPECT_LE(now - renewed[node], seconds(10)) << node;
      }
    }
    for (std::uint32_t node = 0; node < nodes; ++node) {
      EXPECT_LE(now - ensured[node], seconds(120)) << node;
    }
    EXPECT_EQ(schedule.ensured(), nodes);
  }
}

TEST(FleetScheduleTest, MomentsThatWereMissedAreNotMadeUpFor) {
  FleetSchedule schedule({.nodes = 10, .lease_period = seconds(10)}, kStart);
  RunAll(schedule, kStart);
  const MonotonicTime later = kStart + seconds(100);
  const auto done = RunAll(schedule, later);
  EXPECT_EQ(done.size(), 10U) << "one renewal each, not ten";
  for (const FleetTask& task : done) {
    EXPECT_GE(task.late, seconds(80));
    EXPECT_EQ(task.silent, seconds(100));
  }
  ASSERT_TRUE(schedule.next());
  EXPECT_GT(*schedule.next(), later);
}

TEST(FleetScheduleTest, NodesAreLookedAtAgainOneByOne) {
  FleetSchedule schedule({.nodes = 100, .lease_period = minutes(60), .resync_period = minutes(5)},
                         kStart);
  RunAll(schedule, kStart);
  std::size_t most = 0;
  std::size_t all = 0;
  for (int s = 1; s <= 600; ++s) {
    std::size_t now = 0;
    for (const FleetTask& task : RunAll(schedule, kStart + seconds(s))) {
      if (task.work != FleetWork::kEnsure) continue;
      EXPECT_FALSE(task.first);
      EXPECT_GT(s, 150) << "not sooner than half a period after the first time";
      ++now;
    }
    most = std::max(most, now);
    all += now;
  }
  EXPECT_LE(most, 2U);
  EXPECT_GE(all, 100U);
  EXPECT_LE(all, 200U);
}

}  // namespace
}  // namespace tahoma::sim

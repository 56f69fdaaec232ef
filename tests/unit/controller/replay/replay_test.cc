#include "controller/replay/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "controller/replay/report.h"
#include "lib/base/status.h"
#include "tests/unit/controller/replay/replay_world.h"

namespace tahoma::controller {
namespace {

constexpr std::array kAllPolicies = {PolicyKind::kFirstFit, PolicyKind::kEasy,
                                     PolicyKind::kConservative, PolicyKind::kTahoma};
constexpr std::chrono::seconds kHour{3600};

Trace RandomBoxes(std::uint64_t seed, int count) {
  Rng rng(seed);
  std::vector<TraceJob> jobs;
  for (SmallJob& job : RandomJobs(rng, count, 8)) {
    job.chips = std::int64_t{1} << (job.chips - 1);
    job.run *= 60;
    job.submit *= 60;
    job.asked *= 60;
    jobs.push_back(BoxJob(job));
  }
  return TraceOf(std::move(jobs));
}

TEST(ReplayTest, EveryJobRunsForItsTimeAndChipsAreGivenOnce) {
  const Trace trace = RandomBoxes(4, 60);
  for (const PolicyKind policy : kAllPolicies) {
    const ReplayRun run = RunOf(trace, "2-UltraServers", {.policy = policy});
    for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
      const JobOutcome& outcome = run.outcomes[i];
      ASSERT_TRUE(outcome.end.has_value()) << NameOf(policy) << " " << i;
      EXPECT_GE(*outcome.first_start, trace.start + trace.jobs[i].submit);
      EXPECT_EQ(*outcome.end, *outcome.first_start + trace.jobs[i].run);
      EXPECT_EQ(outcome.ran, trace.jobs[i].run);
    }
    for (const FleetMoment& moment : run.moments) {
      EXPECT_LE(moment.used, moment.working);
      EXPECT_LE(moment.stranded, moment.working - moment.used);
    }
    EXPECT_EQ(run.moments.back().used, 0) << NameOf(policy);
    EXPECT_EQ(run.moments.back().waiting, 0) << NameOf(policy);
  }
}

TEST(ReplayTest, AFleetWithRoomLetsNobodyWait) {
  const Trace trace = RandomBoxes(5, 40);
  for (const PolicyKind policy : kAllPolicies) {
    const ReplayRun run = RunOf(trace, "80-UltraServers", {.policy = policy});
    for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
      EXPECT_EQ(run.outcomes[i].first_start, trace.start + trace.jobs[i].submit)
          << NameOf(policy) << " " << i;
    }
  }
}

TEST(ReplayTest, TheSameSeedGivesTheSameBytes) {
  const Trace trace = RandomBoxes(6, 20);
  const auto workload = MakeWorkload(trace, *ParseFleet("2-UltraServers"));
  ASSERT_TRUE(workload.ok());
  for (const PolicyKind policy : kAllPolicies) {
    const auto jobs_of = [&](std::uint64_t seed) {
      return CsvOfJobs(*workload,
                       {RunOf(trace, "2-UltraServers",
                              {.policy = policy, .seed = seed, .failures = 20 * kHour})});
    };
    EXPECT_EQ(jobs_of(7), jobs_of(7));
    EXPECT_NE(jobs_of(7), jobs_of(8)) << NameOf(policy);
  }
}

TEST(ReplayTest, ANodeThatFailsTakesItsJobsWithItAndTheyBeginAnew) {
  const Trace trace = TraceOf({BoxJob({.chips = 64, .run = 20 * 3600, .asked = 30 * 3600})});
  for (const PolicyKind policy : kAllPolicies) {
    const ReplayRun run =
        RunOf(trace, "1-UltraServer",
              {.policy = policy, .seed = 3, .failures = 50 * kHour, .repair = kHour});
    const JobOutcome& outcome = run.outcomes[0];
    ASSERT_TRUE(outcome.end.has_value()) << NameOf(policy);
    EXPECT_GT(outcome.lost, 0);
    EXPECT_GT(outcome.ran, trace.jobs[0].run);
    // It has a whole run behind it, and could start only while all nodes worked.
    EXPECT_GE(*outcome.end - *outcome.first_start, outcome.ran + outcome.lost * kHour);
  }
}

TEST(ReplayTest, AllPoliciesMeetTheSameFailures) {
  const Trace trace = TraceOf({BoxJob({.chips = 16, .run = 40 * 3600})});
  std::vector<std::vector<std::pair<WallTime, std::int64_t>>> seen;
  for (const PolicyKind policy : kAllPolicies) {
    const ReplayRun run =
        RunOf(trace, "4-trn2.48xlarge", {.policy = policy, .failures = 60 * kHour});
    auto& working = seen.emplace_back();
    for (const FleetMoment& moment : run.moments) {
      if (working.empty() || working.back().second != moment.working) {
        working.emplace_back(moment.when, moment.working);
      }
    }
    // A replay ends with its last job: until then all have seen the same.
    const std::size_t common = std::min(working.size(), seen.front().size());
    working.resize(common);
    EXPECT_TRUE(std::equal(working.begin(), working.end(), seen.front().begin()));
    EXPECT_GT(common, 1U);
  }
}

TEST(ReplayTest, AJobThatIsEndedForAnotherGoesOnFromItsCheckpointIfItHasOne) {
  constexpr int kHours = 3600;
  Trace trace = TraceOf({BoxJob({.chips = 64, .run = 3 * kHours, .asked = 4 * kHours}),
                         BoxJob({.chips = 64, .run = 3 * kHours}),
                         BoxJob({.submit = kHours, .chips = 64, .run = kHours}),
                         BoxJob({.submit = kHours + 600, .chips = 64, .run = kHours})});
  trace.jobs[0].preemptible = trace.jobs[1].preemptible = true;
  trace.jobs[1].checkpointable = false;
  trace.jobs[2].priority = trace.jobs[3].priority = 100;
  const ReplayRun run = RunOf(trace, "2-UltraServers", {.policy = PolicyKind::kTahoma});
  for (const std::size_t first : {2U, 3U}) {
    EXPECT_EQ(run.outcomes[first].first_start, trace.start + trace.jobs[first].submit);
    EXPECT_EQ(run.outcomes[first].ended, 0);
  }
  for (const std::size_t ended : {0U, 1U}) EXPECT_EQ(run.outcomes[ended].ended, 1);
  EXPECT_EQ(run.outcomes[0].ran, trace.jobs[0].run);
  EXPECT_GE(run.outcomes[1].ran, trace.jobs[1].run + kHour);
  ASSERT_TRUE(run.outcomes[0].end && run.outcomes[1].end);
  // Each had to wait for an hour.
  EXPECT_EQ(*run.outcomes[0].end, trace.start + run.outcomes[0].ran + kHour);
  EXPECT_EQ(*run.outcomes[1].end, trace.start + run.outcomes[1].ran + kHour);
}

// Nodes fail so often that all of them never work for as long as the job runs.
TEST(ReplayTest, AReplayEndsThoughAJobIsNeverDone) {
  const Trace trace = TraceOf({BoxJob({.chips = 64, .run = 3600}),
                               BoxJob({.submit = 1, .chips = 64, .run = 300 * 24 * 3600})});
  const ReplayRun run =
      RunOf(trace, "1-UltraServer",
            {.policy = PolicyKind::kFirstFit, .failures = kHour, .repair = 200 * kHour});
  EXPECT_FALSE(run.outcomes[1].end.has_value());
  EXPECT_GT(run.failures, 3);
}

TEST(ReplayTest, JobsThatTakeLongerThanAClockCountsAreLeftUnfinished) {
  constexpr int kYear = 366 * 24 * 3600;
  const Trace trace = TraceOf(std::vector<TraceJob>(120, BoxJob({.chips = 64, .run = kYear})));
  const ReplayRun run = RunOf(trace, "1-UltraServer", {.policy = PolicyKind::kEasy});
  EXPECT_EQ(
      std::ranges::count_if(run.outcomes, [](const JobOutcome& outcome) { return !outcome.end; }),
      20);
}

TEST(ReplayTest, AJobThatFitsOnlyALargerFleetIsLeftOut) {
  const Trace trace =
      TraceOf({BoxJob({.chips = 128}), BoxJob({.chips = 16}), BoxJob({.chips = 64'000'000})});
  const auto workload = MakeWorkload(trace, *ParseFleet("1-UltraServer"));
  ASSERT_TRUE(workload.ok());
  EXPECT_EQ(workload->too_large, 2U);
  ASSERT_EQ(workload->jobs.size(), 1U);
  EXPECT_EQ(workload->jobs[0].name, "2");
  const auto none = MakeWorkload(TraceOf({BoxJob({.chips = 128})}), *ParseFleet("1-UltraServer"));
  EXPECT_EQ(Message(none.status()),
            "none of the 1 jobs fits the fleet (1 UltraServer: 64 chips); take a larger fleet");
}

}  // namespace
}  // namespace tahoma::controller

#include "controller/replay/baselines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/controller/replay/replay_world.h"

namespace tahoma::controller {
namespace {

constexpr const char* kNode = "1-trn2.48xlarge";  // 16 chips
constexpr std::int64_t kProcessors = 16;

// A batch system that counts processors, second by second, and knows no places.
class ProcessorList {
 public:
  ProcessorList(std::vector<SmallJob> jobs, bool easy) : jobs_(std::move(jobs)), easy_(easy) {
    for (SmallJob& job : jobs_) job.asked = job.asked == 0 ? job.run : job.asked;
    starts_.assign(jobs_.size(), -1);
  }

  std::vector<std::int64_t> Run() {
    for (int now = 0; std::ranges::count(starts_, -1) > 0; ++now) {
      std::erase_if(running_, [&](std::size_t job) { return EndOf(job) <= now; });
      Serve(now);
    }
    return starts_;
  }

 private:
  std::int64_t EndOf(std::size_t job) const { return starts_[job] + jobs_[job].run; }
  std::int64_t LimitOf(std::size_t job) const { return starts_[job] + jobs_[job].asked; }
  // The processors that are free at that time at the latest.
  std::int64_t FreeAt(std::int64_t when) const {
    std::int64_t free = kProcessors;
    for (const std::size_t job : running_) free -= LimitOf(job) > when ? jobs_[job].chips : 0;
    return free;
  }

  void Serve(int now) {
    bool promised = false;
    std::int64_t shadow = 0;
    std::int64_t extra = 0;
    for (std::size_t job = 0; job < jobs_.size(); ++job) {
      if (starts_[job] >= 0 || jobs_[job].submit > now) continue;
      const std::int64_t chips = jobs_[job].chips;
      const bool fits = chips <= FreeAt(now);
      const bool in_time = !promised || now + jobs_[job].asked <= shadow;
      if (fits && (in_time || chips <= extra)) {
        if (!in_time) extra -= chips;
        starts_[job] = now;
        running_.push_back(job);
      } else if (easy_ && !promised) {
        promised = true;
        shadow = now + 1;
        while (FreeAt(shadow) < chips) ++shadow;
        extra = FreeAt(shadow) - chips;
      }
    }
  }

  std::vector<SmallJob> jobs_;
  bool easy_;
  std::vector<std::int64_t> starts_;
  std::vector<std::size_t> running_;
};

Trace Scattered(const std::vector<SmallJob>& jobs) {
  std::vector<TraceJob> made;
  for (const SmallJob& job : jobs) made.push_back(ScatteredJob(job));
  return TraceOf(std::move(made));
}

Trace Boxes(const std::vector<SmallJob>& jobs) {
  std::vector<TraceJob> made;
  for (const SmallJob& job : jobs) made.push_back(BoxJob(job));
  return TraceOf(std::move(made));
}

std::vector<std::int64_t> StartsWith(PolicyKind policy, const Trace& trace,
                                     const std::string& fleet) {
  return StartsOf(trace, RunOf(trace, fleet, {.policy = policy}));
}

TEST(BaselinesTest, FirstFitStartsWhateverFitsAsAListOfProcessorsDoes) {
  Rng rng(1);
  for (int round = 0; round < 12; ++round) {
    const std::vector<SmallJob> jobs = RandomJobs(rng, 40, kProcessors);
    EXPECT_EQ(StartsWith(PolicyKind::kFirstFit, Scattered(jobs), kNode),
              ProcessorList(jobs, /*easy=*/false).Run());
  }
}

TEST(BaselinesTest, EasyBackfillsAsAListOfProcessorsDoes) {
  Rng rng(2);
  for (int round = 0; round < 12; ++round) {
    const std::vector<SmallJob> jobs = RandomJobs(rng, 40, kProcessors);
    EXPECT_EQ(StartsWith(PolicyKind::kEasy, Scattered(jobs), kNode),
              ProcessorList(jobs, /*easy=*/true).Run());
  }
}

TEST(BaselinesTest, FirstFitLetsALargeJobWaitForASmallStream) {
  std::vector<SmallJob> jobs = {{.submit = 0, .chips = 8, .run = 100},
                                {.submit = 1, .chips = 16, .run = 10}};
  for (int i = 0; i < 20; ++i) jobs.push_back({.submit = 2 + 50 * i, .chips = 8, .run = 100});
  EXPECT_GT(StartsWith(PolicyKind::kFirstFit, Boxes(jobs), kNode)[1], 900);
  EXPECT_EQ(StartsWith(PolicyKind::kEasy, Boxes(jobs), kNode)[1], 100);
  EXPECT_EQ(StartsWith(PolicyKind::kConservative, Boxes(jobs), kNode)[1], 100);
}

// The third job delays the second one, which only conservative backfilling has promised a time.
TEST(BaselinesTest, ConservativePromisesATimeToEveryJob) {
  const Trace trace = Boxes({{.submit = 0, .chips = 8, .run = 100},
                             {.submit = 1, .chips = 16, .run = 10},
                             {.submit = 2, .chips = 16, .run = 10},
                             {.submit = 3, .chips = 8, .run = 97},
                             {.submit = 4, .chips = 8, .run = 200}});
  EXPECT_EQ(StartsWith(PolicyKind::kConservative, trace, kNode),
            (std::vector<std::int64_t>{0, 100, 110, 3, 120}));
}

TEST(BaselinesTest, ConservativeStartsNoJobOtherwiseForJobsThatComeLater) {
  Rng rng(3);
  for (int round = 0; round < 10; ++round) {
    std::vector<SmallJob> jobs = RandomJobs(rng, 30, 5);
    for (SmallJob& job : jobs) {
      job.chips = std::int64_t{1} << (job.chips - 1);
      job.asked = 0;  // early ends would let promises move ahead
    }
    const std::vector<std::int64_t> all = StartsWith(PolicyKind::kConservative, Boxes(jobs), kNode);
    for (std::size_t count = 5; count < jobs.size(); count += 5) {
      const std::vector<SmallJob> first(jobs.begin(),
                                        jobs.begin() + static_cast<std::ptrdiff_t>(count));
      EXPECT_EQ(
          StartsWith(PolicyKind::kConservative, Boxes(first), kNode),
          std::vector<std::int64_t>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)));
    }
  }
}

TEST(BaselinesTest, ConservativeUsesTheTimeOfJobsThatEndEarly) {
  const Trace trace = Boxes({{.submit = 0, .chips = 16, .run = 20, .asked = 100},
                             {.submit = 1, .chips = 16, .run = 10, .asked = 100},
                             {.submit = 2, .chips = 16, .run = 10, .asked = 100}});
  EXPECT_EQ(StartsWith(PolicyKind::kConservative, trace, kNode),
            (std::vector<std::int64_t>{0, 20, 30}));
}

// A later job may not take the chips that the first one is promised, but may take chips beside.
TEST(BaselinesTest, EasyKeepsAPlaceOnTheTorusAndNotANumberOfChips) {
  const Trace trace = Boxes({{.submit = 0, .chips = 64, .run = 100},
                             {.submit = 0, .chips = 32, .run = 300},
                             {.submit = 1, .chips = 64, .run = 10},
                             {.submit = 2, .chips = 32, .run = 500}});
  EXPECT_EQ(StartsWith(PolicyKind::kEasy, trace, "2-UltraServers"),
            (std::vector<std::int64_t>{0, 0, 100, 2}));
}

TEST(BaselinesTest, AJobOfHigherPriorityIsServedFirst) {
  Trace trace = Boxes({{.submit = 0, .chips = 16, .run = 10},
                       {.submit = 1, .chips = 16, .run = 10},
                       {.submit = 2, .chips = 16, .run = 10}});
  trace.jobs[2].priority = 5;
  for (const PolicyKind policy :
       {PolicyKind::kFirstFit, PolicyKind::kEasy, PolicyKind::kConservative, PolicyKind::kTahoma}) {
    EXPECT_EQ(StartsWith(policy, trace, kNode), (std::vector<std::int64_t>{0, 20, 10}))
        << NameOf(policy);
  }
}

}  // namespace
}  // namespace tahoma::controller

#include "controller/replay/measures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "controller/replay/plots.h"
#include "controller/replay/report.h"
#include "lib/base/json.h"
#include "tests/unit/controller/replay/replay_world.h"

namespace tahoma::controller {
namespace {

// Two jobs of all 16 chips, one after the other, and a third one later.
Trace ThreeJobs() {
  return TraceOf({BoxJob({.submit = 0, .chips = 16, .run = 100}),
                  BoxJob({.submit = 20, .chips = 16, .run = 5}),
                  BoxJob({.submit = 200, .chips = 8, .run = 50})});
}

struct Measured {
  Workload workload;
  ReplayRun run;
  ReplayMeasures measures;
};

Measured MeasuredOf(const Trace& trace, PolicyKind policy, const char* fleet = "1-trn2.48xlarge") {
  Measured measured;
  measured.workload = *MakeWorkload(trace, *ParseFleet(fleet));
  measured.run = RunOf(trace, fleet, {.policy = policy});
  measured.measures = Measure(measured.workload, measured.run);
  return measured;
}

TEST(MeasuresTest, TheNumbersOfAShortReplayAreThoseOfPaper) {
  const ReplayMeasures measures = MeasuredOf(ThreeJobs(), PolicyKind::kEasy).measures;
  EXPECT_EQ(measures.jobs, 3);
  EXPECT_EQ(measures.unfinished, 0);
  EXPECT_DOUBLE_EQ(measures.makespan, 250);
  EXPECT_DOUBLE_EQ(measures.utilisation, 100.0 * (16 * 105 + 8 * 50) / (16 * 250));
  EXPECT_DOUBLE_EQ(measures.utilisation_loaded, 100.0 * (16 * 105) / (16 * 200));
  EXPECT_DOUBLE_EQ(measures.wait_mean, 80.0 / 3);
  EXPECT_DOUBLE_EQ(measures.wait_median, 0);
  EXPECT_DOUBLE_EQ(measures.wait_p95, 80);
  EXPECT_DOUBLE_EQ(measures.wait_most, 80);
  // The second job was there for 85 s and counts as one of 10 s.
  EXPECT_DOUBLE_EQ(measures.slowdown, (1 + 8.5 + 1) / 3);
  EXPECT_DOUBLE_EQ(measures.stranded, 0);
  EXPECT_FALSE(measures.share_error.has_value());
}

TEST(MeasuresTest, ChipsAreStrandedWhileTheFirstJobAsksForNoMore) {
  // Half of each node is in use until 100, and a job of 16 chips comes at 10: it needs a node.
  std::vector<TraceJob> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(BoxJob({.chips = 8, .run = i % 2 == 0 ? 100 : 5}));
  jobs.push_back(BoxJob({.submit = 10, .chips = 16, .run = 100}));
  const Measured measured = MeasuredOf(TraceOf(jobs), PolicyKind::kFirstFit, "2-trn2.48xlarge");
  EXPECT_DOUBLE_EQ(measured.measures.wait_most, 90);
  EXPECT_DOUBLE_EQ(measured.measures.stranded, 90.0 * 16 / 200);
}

TEST(MeasuresTest, TheShareOfAQueueIsComparedWithItsWeight) {
  Trace trace;
  trace.queues.resize(2);
  trace.queues[0].name = trace.queues[0].uid = "a";
  trace.queues[0].weight = 3;
  trace.queues[1].name = trace.queues[1].uid = "b";
  std::vector<TraceJob> jobs;
  for (int i = 0; i < 40; ++i) {
    jobs.push_back(BoxJob({.chips = 16, .run = 100}));
    jobs.back().queue = i % 2 == 0 ? "a" : "b";
  }
  trace.jobs = jobs;
  const ReplayMeasures measures = MeasuredOf(trace, PolicyKind::kFirstFit).measures;
  ASSERT_TRUE(measures.share_error.has_value());
  // One after the other, half of the time each; a quarter too much for b.
  EXPECT_NEAR(*measures.share_error, 25, 2);
}

// Queues in a tree: `team` has two thirds, of which `a` has a quarter.
TEST(MeasuresTest, AShareBelowAQueueIsAPartOfItsPart) {
  Trace trace;
  for (const char* name : {"team", "a", "b", "alone", "idle"}) {
    trace.queues.emplace_back().name = name;
  }
  trace.queues[0].weight = 2;
  trace.queues[1].parent = trace.queues[2].parent = "team";
  trace.queues[2].weight = 3;
  trace.queues[4].weight = 100;
  constexpr std::array kTurns = {"a", "b", "b", "b", "alone", "alone"};  // as is due
  for (std::size_t i = 0; i < 20 * kTurns.size(); ++i) {
    trace.jobs.push_back(BoxJob({.chips = 16, .run = 100}));
    trace.jobs.back().queue = kTurns[i % kTurns.size()];
  }
  const ReplayMeasures measures = MeasuredOf(trace, PolicyKind::kFirstFit).measures;
  ASSERT_TRUE(measures.share_error.has_value());
  EXPECT_NEAR(*measures.share_error, 0, 1);
}

TEST(MeasuresTest, ATableHasAColumnForEachPolicy) {
  const std::vector<ReplayMeasures> all = {MeasuredOf(ThreeJobs(), PolicyKind::kEasy).measures,
                                           MeasuredOf(ThreeJobs(), PolicyKind::kTahoma).measures};
  const std::string text = TextReport(all);
  EXPECT_THAT(text, testing::StartsWith("                               easy   tahoma\n"
                                        "jobs                              3        3\n"));
  EXPECT_THAT(CsvReport(all), testing::StartsWith("measure,easy,tahoma\njobs,3,3\nunfinished,0,0\n"
                                                  "utilisationPercent,52.00,52.00\n"));
  const Json json = ParseJson(JsonReport(all));
  EXPECT_EQ(json[1]["policy"], "tahoma");
  EXPECT_EQ(json[0]["waitMeanSeconds"], 26.7);
  EXPECT_TRUE(json[0]["shareErrorPercent"].is_null());
}

TEST(MeasuresTest, TheTableOfJobsQuotesTheirNames) {
  Trace trace = ThreeJobs();
  trace.jobs[1].name = "a \"b\", c";
  const Measured measured = MeasuredOf(trace, PolicyKind::kEasy);
  EXPECT_EQ(
      CsvOfJobs(measured.workload, {measured.run}),
      "policy,job,queue,chips,submit,start,end,waitSeconds,lost,ended\n"
      "easy,1,default,16,2026-01-01T00:00:00Z,2026-01-01T00:00:00Z,2026-01-01T00:01:40Z,0,0,0\n"
      "easy,\"a \"\"b\"\", c\",default,16,2026-01-01T00:00:20Z,2026-01-01T00:01:40Z,"
      "2026-01-01T00:01:45Z,80,0,0\n"
      "easy,3,default,8,2026-01-01T00:03:20Z,2026-01-01T00:03:20Z,2026-01-01T00:04:10Z,0,0,"
      "0\n");
}

TEST(MeasuresTest, PicturesHaveALineForEachPolicy) {
  const Measured easy = MeasuredOf(ThreeJobs(), PolicyKind::kEasy);
  const Measured tahoma = MeasuredOf(ThreeJobs(), PolicyKind::kTahoma);
  for (const std::string& svg : {DrawUse(easy.workload, {easy.run, tahoma.run}),
                                 DrawWaits(easy.workload, {easy.run, tahoma.run})}) {
    EXPECT_THAT(svg, testing::StartsWith("<svg "));
    EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
    EXPECT_THAT(svg, testing::HasSubstr(">easy</text>"));
    EXPECT_THAT(svg, testing::HasSubstr(">tahoma</text>"));
    EXPECT_THAT(svg, testing::Not(testing::HasSubstr("nan")));
  }
}

}  // namespace
}  // namespace tahoma::controller

// Counts of what programs did on a node's cores, as sums and as Prometheus reads them.

#include "sim-node/serve/core_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr PhysicalCore kCore = {.chip = torus::ChipIndex(3), .core = 2};
constexpr PhysicalCore kNext = {.chip = torus::ChipIndex(3), .core = 3};

// A run in which resource i was busy for i + 1 us.
CoreRun Busy(int cores) {
  CoreRun run{.time = Microseconds(100), .cores = cores};
  run.resources.resize(static_cast<std::size_t>(cores) * kCoreResources + 1);
  for (std::size_t i = 0; i < run.resources.size(); ++i) {
    run.resources[i].busy = Microseconds(static_cast<double>(i + 1));
  }
  run.work = {CoreWork{.hbm_bytes = 7, .flops = 1000}, CoreWork{.hbm_bytes = 8, .flops = 2000}};
  return run;
}

class CoreCountersTest : public ::testing::Test {
 protected:
  void Run(const absl::StatusOr<CoreRun>& run, int cores = 1) {
    counters_.Begin(kCore, cores);
    clock_.Advance(std::chrono::milliseconds(250));
    counters_.End(kCore, cores, run);
  }

  ManualClock clock_;
  CoreCounters counters_{clock_};
};

TEST_F(CoreCountersTest, ProgramsAddUp) {
  Run(Busy(1));
  Run(Busy(1));
  const CoreCounts counts = counters_.Of(kCore);
  EXPECT_EQ(counts.ended, (std::array<std::uint64_t, 3>{2, 0, 0}));
  EXPECT_EQ(counts.in_use, std::chrono::milliseconds(500));
  EXPECT_EQ(counts.time, Microseconds(200));
  EXPECT_EQ(counts.engines[0], Microseconds(2));
  EXPECT_EQ(counts.engines[4], Microseconds(10));
  EXPECT_EQ(counts.hbm_bytes, 14U);
  EXPECT_EQ(counts.flops, 2000U);
  EXPECT_EQ(counters_.Of(kNext).in_use, std::chrono::nanoseconds(0));
}

TEST_F(CoreCountersTest, EachOfTwoCoresCountsItsOwn) {
  Run(Busy(2), 2);
  EXPECT_EQ(counters_.Of(kCore).flops, 1000U);
  EXPECT_EQ(counters_.Of(kNext).flops, 2000U);
  EXPECT_EQ(counters_.Of(kNext).hbm_bytes, 8U);
  EXPECT_EQ(counters_.Of(kNext).ended[0], 1U);
  EXPECT_EQ(counters_.Of(kNext).engines[0], Microseconds(kCoreResources + 1));
}

TEST_F(CoreCountersTest, AFailedProgramAddsItsTimeInUseAlone) {
  Run(Aborted("a fault"));
  Run(InvalidArgument("a mistake"));
  const CoreCounts counts = counters_.Of(kCore);
  EXPECT_EQ(counts.ended, (std::array<std::uint64_t, 3>{0, 1, 1}));
  EXPECT_EQ(counts.in_use, std::chrono::milliseconds(500));
  EXPECT_EQ(counts.time, VirtualDuration{});
}

TEST_F(CoreCountersTest, AProgramThatRunsCountsUntilNow) {
  counters_.Begin(kCore, 1);
  clock_.Advance(std::chrono::seconds(2));
  EXPECT_EQ(counters_.Of(kCore).in_use, std::chrono::seconds(2));
  clock_.Advance(std::chrono::seconds(1));
  counters_.End(kCore, 1, Busy(1));
  clock_.Advance(std::chrono::seconds(9));
  EXPECT_EQ(counters_.Of(kCore).in_use, std::chrono::seconds(3));
}

TEST_F(CoreCountersTest, PrometheusReadsTheCoresThatHadPrograms) {
  rest::Metrics metrics;
  counters_.Show(metrics);
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("tahoma_core_flops_total{")));
  Run(Busy(1));
  Run(Aborted("a fault"));
  const std::string text = metrics.Text();
  for (const std::string_view line :
       {R"(tahoma_core_programs_total{chip="3",core="2",result="completed"} 1)",
        R"(tahoma_core_programs_total{chip="3",core="2",result="hardware_error"} 1)",
        R"(tahoma_core_programs_total{chip="3",core="2",result="program_error"} 0)",
        R"(tahoma_core_in_use_seconds_total{chip="3",core="2"} 0.5)",
        R"(tahoma_core_program_seconds_total{chip="3",core="2"} 0.0001)",
        R"(tahoma_core_engine_busy_seconds_total{chip="3",core="2",engine="tensor"} 1e-06)",
        R"(tahoma_core_hbm_bytes_total{chip="3",core="2"} 7)",
        R"(tahoma_core_flops_total{chip="3",core="2"} 1000)"}) {
    EXPECT_THAT(text, HasSubstr(std::string(line) + "\n"));
  }
  EXPECT_THAT(text, Not(HasSubstr(R"(core="3")")));
}

}  // namespace
}  // namespace tahoma::sim

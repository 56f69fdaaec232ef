// Programs on many cores at once: their times beside those of a core alone and of a collective
// alone.

#include "sim-node/emulator/machine/machine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "lib/isa/assemble.h"
#include "lib/isa/check.h"
#include "lib/isa/instruction.h"
#include "lib/isa/text.h"
#include "sim-node/emulator/collective/plan/plan.h"

namespace tahoma::sim {
namespace {

const hw::CoreProfile& kProfile = hw::kTrainium2Core;
constexpr std::size_t kIntervals = 100'000;

isa::Assembled Ready(const std::string& text) {
  auto program = isa::ParseText(text, "test");
  EXPECT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(isa::CheckProgram(*program).ok()) << isa::CheckProgram(*program);
  auto ready = isa::Assemble(*std::move(program));
  EXPECT_TRUE(ready.ok()) << ready.status();
  return *std::move(ready);
}

Fabric Links() { return Fabric(TorusLinks(torus::kInstanceShape, hw::kTrainium2)); }

// The first `per_chip` cores of LNC 2 on each of the first chips.
std::vector<MachineRank> Ranks(int chips, int per_chip = 1) {
  std::vector<MachineRank> ranks;
  for (int chip = 0; chip < chips; ++chip) {
    for (int core = 0; core < per_chip; ++core) {
      ranks.push_back({.chip = torus::ChipIndex(chip), .stack = static_cast<std::size_t>(core)});
    }
  }
  return ranks;
}

absl::StatusOr<MachineRun> TryRun(const std::string& text, const std::vector<MachineRank>& ranks,
                                  const Fabric& links = Links()) {
  const isa::Assembled ready = Ready(text);
  return RunMachine(
      ready, ranks, links, kProfile, {.most_intervals = kIntervals},
      {.carry_out = [](std::size_t, const auto&, const auto*) { return absl::OkStatus(); },
       .collect = [](const auto&, std::span<const int>) { return absl::OkStatus(); }});
}

MachineRun RunOf(const std::string& text, const std::vector<MachineRank>& ranks) {
  auto run = TryRun(text, ranks);
  EXPECT_TRUE(run.ok()) << run.status();
  return *std::move(run);
}

constexpr std::string_view kLoads =
    "tensor a fp32 [128, 2048] in\nsbuf s0 fp32 [128, 2048]\nsbuf s1 fp32 [128, 2048]\n";

// Copies of 1 MiB from HBM, one after the other on two queues.
std::string Loads(int count) {
  std::string text(kLoads);
  for (int i = 0; i < count; ++i) {
    text += fmt::format("dma_copy s{} <- a engine={}\n", i % 2, i % 2 == 0 ? "sync" : "scalar");
  }
  return text;
}

std::string AllReduce(std::size_t elements, const std::string& options = "") {
  return fmt::format("tensor x fp32 [{}] inout\nall_reduce x <- x {}\n", elements, options);
}

VirtualDuration AloneOf(Operation operation, std::uint64_t bytes, int chips, int per_chip) {
  std::vector<Member> members;
  for (int chip = 0; chip < chips; ++chip) {
    members.push_back({.chip = torus::ChipIndex(chip), .ranks = per_chip, .banks = per_chip});
  }
  const auto plan = PlanCollective({.operation = operation, .bytes = bytes}, members,
                                   TorusLinks(torus::kInstanceShape, hw::kTrainium2));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan->times.end - plan->times.start;
}

TEST(MachineTest, RanksWithoutCollectivesTakeTheTimeOfOneAlone) {
  const std::string text = Loads(6);
  const auto alone =
      RunCore(Ready(text), kProfile, {}, [](const auto&, const auto*) { return absl::OkStatus(); });
  ASSERT_TRUE(alone.ok());
  const MachineRun run = RunOf(text, Ranks(4, 4));
  for (const CoreRun& rank : run.ranks) {
    EXPECT_EQ(rank.time, alone->time);
    EXPECT_EQ(rank.hbm_bytes, alone->hbm_bytes);
  }
}

// A core's copies at 408 GB/s fit twice, but not three times, into the 716 GB/s of a stack.
TEST(MachineTest, CoresThatShareAStackSlowEachOther) {
  const std::string text = Loads(20);
  std::vector<MachineRank> ranks = Ranks(1, 3);
  const VirtualDuration apart = RunOf(text, ranks).time;
  for (MachineRank& rank : ranks) rank.stack = 0;
  const MachineRun together = RunOf(text, ranks);
  EXPECT_GT(Nanoseconds(together.time), 1.2 * Nanoseconds(apart));
  // No faster than the stack.
  EXPECT_GE(together.time, TransferTime(3 * 20 * (std::uint64_t{1} << 20U), StackRateOf(kProfile)));
}

TEST(MachineTest, AnotherStackIsSlowerAndTheOtherDiesSlowest) {
  const std::string text = Loads(20);
  std::vector<VirtualDuration> times;
  for (const std::size_t stack : {0U, 1U, 2U}) {
    std::vector<MachineRank> ranks = Ranks(1);
    ranks[0].of_buffer.assign(3, stack);
    times.push_back(RunOf(text, ranks).ranks[0].resources[kDmaResource].busy);
  }
  EXPECT_NEAR(Nanoseconds(times[0]) / Nanoseconds(times[1]), 0.9, 1e-3);
  EXPECT_NEAR(Nanoseconds(times[0]) / Nanoseconds(times[2]), 0.75, 1e-3);
}

TEST(MachineTest, ACollectiveAloneTakesItsPlansTime) {
  for (const int chips : {2, 4, 16}) {
    for (const std::size_t elements : {std::size_t{4096}, std::size_t{1} << 22U}) {
      const MachineRun run = RunOf(AllReduce(elements), Ranks(chips, 4));
      const VirtualDuration alone =
          AloneOf(Operation::kAllReduce, elements * sizeof(float), chips, 4);
      // An engine posts it first; four stacks together have 1 % less than the chip's figure.
      const double posted = 64 / 1.2;
      EXPECT_GE(Nanoseconds(run.time), Nanoseconds(alone)) << chips << " " << elements;
      EXPECT_LE(Nanoseconds(run.time), 1.03 * Nanoseconds(alone) + posted + 1)
          << chips << " " << elements;
    }
  }
}

// One rank of each chip has one stack of 716 GB/s, where links would carry more.
TEST(MachineTest, RanksPayForTheStacksOfTheirBuffers) {
  const std::string text = AllReduce(std::size_t{1} << 24U);
  std::vector<MachineRank> apart = Ranks(16, 2);
  std::vector<MachineRank> together = apart;
  for (MachineRank& rank : together) rank.stack = 0;
  EXPECT_GT(Nanoseconds(RunOf(text, together).time), 1.05 * Nanoseconds(RunOf(text, apart).time));
}

TEST(MachineTest, ACollectiveBeginsWhenTheLastRankHasPosted) {
  // The rank on the other die's stack loads longer.
  std::vector<MachineRank> ranks = Ranks(2);
  const std::string text =
      Loads(10) + "tensor x fp32 [128, 2048] inout\n" + "dma_copy x <- s1\nall_reduce x <- x\n";
  ranks[1].of_buffer = {2, 0, 0, 0};
  const MachineRun run = RunOf(text, ranks);
  std::vector<VirtualTime> begins;
  VirtualTime last_copy{};
  for (const CoreRun& rank : run.ranks) {
    for (const Interval& one : rank.timeline) {
      if (rank.NameOf(one.resource) == "collectives") begins.push_back(one.begin);
      if (rank.NameOf(one.resource) == "DMA engine 0") last_copy = std::max(last_copy, one.end);
    }
  }
  ASSERT_EQ(begins.size(), 2U);
  EXPECT_EQ(begins[0], begins[1]);
  EXPECT_GE(begins[0], last_copy);
}

// Copies go on while the collective runs, and both take longer than alone.
TEST(MachineTest, CopiesAndCollectivesOverlapAndSlowEachOther) {
  constexpr std::size_t kElements = std::size_t{1} << 24U;
  const std::vector<MachineRank> ranks = Ranks(16);
  const VirtualDuration collective = RunOf(AllReduce(kElements), ranks).time;
  const VirtualDuration copies = RunOf(Loads(400), ranks).time;
  const VirtualDuration both = RunOf(AllReduce(kElements) + Loads(400), ranks).time;
  EXPECT_GT(both, std::max(collective, copies));
  EXPECT_LT(both, collective + copies);
}

TEST(MachineTest, GroupsRunSideBySide) {
  // Rows of two chips, which have links of their own.
  const MachineRun halves = RunOf(AllReduce(1U << 22U, "ranks=2"), Ranks(4));
  const MachineRun one = RunOf(AllReduce(1U << 22U), Ranks(2));
  EXPECT_EQ(halves.time, one.time);
}

TEST(MachineTest, CollectivesOfARankFollowOneAnother) {
  const std::string two =
      "tensor x fp32 [65536] inout\ntensor y fp32 [65536] inout\n"
      "all_reduce x <- x\nall_reduce y <- y engine=sync\n";
  const MachineRun run = RunOf(two, Ranks(4));
  const VirtualDuration one = RunOf(AllReduce(65536), Ranks(4)).time;
  EXPECT_GT(Nanoseconds(run.time), 1.9 * Nanoseconds(one));
  for (const CoreRun& rank : run.ranks) {
    EXPECT_EQ(rank.NameOf(rank.busiest), "collectives");
    EXPECT_GE(rank.time, rank.bound());
  }
}

TEST(MachineTest, TheSameProgramTakesTheSameTimes) {
  const std::string text = AllReduce(1U << 20U) + Loads(50);
  const MachineRun one = RunOf(text, Ranks(8, 2));
  const MachineRun other = RunOf(text, Ranks(8, 2));
  for (std::size_t rank = 0; rank < one.ranks.size(); ++rank) {
    EXPECT_EQ(one.ranks[rank].time, other.ranks[rank].time);
  }
}

TEST(MachineTest, AGroupOfOneIsACopy) {
  const MachineRun run =
      RunOf("tensor x fp32 [64] in\ntensor y fp32 [64] out\nall_gather y <- x\n", Ranks(1));
  EXPECT_EQ(run.ranks.size(), 1U);
}

TEST(MachineTest, ChipsThatAreCutOffEndTheRun) {
  Fabric cut = Links();
  ASSERT_TRUE(cut.SetChipPermille(torus::ChipIndex(1), 0).ok());
  const auto run = TryRun(AllReduce(4096), Ranks(2), cut);
  EXPECT_EQ(run.status().code(), absl::StatusCode::kFailedPrecondition) << run.status();
}

TEST(MachineTest, AFailureEndsTheRun) {
  const isa::Assembled ready = Ready(AllReduce(4096) + Loads(3));
  const auto run =
      RunMachine(ready, Ranks(2), Links(), kProfile, {},
                 {.carry_out = [](std::size_t rank, const auto&, const auto*) -> absl::Status {
                    return rank == 1 ? Aborted("chip 1 is broken") : absl::OkStatus();
                  },
                  .collect = [](const auto&, std::span<const int>) { return absl::OkStatus(); }});
  EXPECT_EQ(run.status().code(), absl::StatusCode::kAborted);
  const auto collects = RunMachine(
      ready, Ranks(2), Links(), kProfile, {},
      {.carry_out = [](std::size_t, const auto&, const auto*) { return absl::OkStatus(); },
       .collect = [](const auto&, std::span<const int>) { return OutOfRange("no memory"); }});
  EXPECT_EQ(collects.status().code(), absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace tahoma::sim

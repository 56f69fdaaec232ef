// What chips' access to other chips' memory costs to work out, and what a broken cable costs a
// collective. No data is moved.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "lib/hw/catalogue.h"
#include "sim-node/collective/bound.h"
#include "sim-node/collective/plan.h"
#include "sim-node/collective/remote_memory.h"

namespace tahoma::sim {
namespace {

using torus::ChipIndex;

// Every chip of an UltraServer reads 64 KiB from every other at once.
void AllChipsReadAll(benchmark::State& state) {
  const TorusLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
  std::vector<MemoryAccess> batch;
  for (int chip = 0; chip < 64; ++chip) {
    for (int other = 0; other < 64; ++other) {
      if (chip == other) continue;
      batch.push_back({.kind = AccessKind::kRead,
                       .local = {ChipIndex(chip), 0},
                       .remote = {ChipIndex(other), 0},
                       .bytes = 64 << 10});
    }
  }
  double microseconds = 0;
  for (auto _ : state) {
    auto times = TimeAccesses(batch, links, kAllChips);
    microseconds = Nanoseconds(times->end.time_since_epoch()) / 1e3;
    benchmark::DoNotOptimize(times);
  }
  state.counters["emulated_us"] = microseconds;
}
BENCHMARK(AllChipsReadAll)->Name("dma_4032_reads_ms")->Unit(benchmark::kMillisecond);

// Emulated time of 1 GiB with one cable down, start-up included, as a multiple of what the cuts of
// the damaged torus allow.
void BrokenCable(benchmark::State& state, Operation operation, int chips, torus::Axis axis) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;
  TorusLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
  const LinkId link = TorusLinks::IdOf(ChipIndex(5), axis, torus::Direction::kPlus);
  if (!links.SetCablePermille(link, 0).ok()) return;
  const std::vector<Member> members = MembersOf(kAllChips >> (64 - chips));
  const VirtualDuration bound = LowerBound(operation, SetOf(members, links), kGiB, links);
  double ratio = 0;
  for (auto _ : state) {
    const auto plan = PlanCollective({.operation = operation, .bytes = kGiB}, members, links);
    ratio = Nanoseconds(plan->times.end - plan->times.start) / Nanoseconds(bound);
  }
  state.counters["over_bound"] = ratio;
}

void Register() {
  struct Shape {
    int chips;
    std::string name;
    torus::Axis axis;
  };
  const std::vector<std::pair<Operation, std::string>> operations = {
      {Operation::kAllReduce, "allreduce"},
      {Operation::kAllGather, "allgather"},
      {Operation::kReduceScatter, "reducescatter"}};
  for (const auto& [operation, name] : operations) {
    for (const Shape& shape : {Shape{16, "4x4_without_x_cable", torus::Axis::kX},
                               Shape{64, "4x4x4_without_x_cable", torus::Axis::kX},
                               Shape{64, "4x4x4_without_z_cable", torus::Axis::kZ}}) {
      benchmark::RegisterBenchmark((name + "_" + shape.name + "_over_bound").c_str(),
                                   [=, operation = operation](benchmark::State& state) {
                                     BrokenCable(state, operation, shape.chips, shape.axis);
                                   })
          ->Unit(benchmark::kMillisecond);
    }
  }
}

}  // namespace
}  // namespace tahoma::sim

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  tahoma::sim::Register();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

// What the emulator needs to cost a collective: planned and timed, no data moved.

#include <benchmark/benchmark.h>

#include <bit>

#include "lib/hw/catalogue.h"
#include "sim-node/collective/plan.h"

namespace tahoma::sim {
namespace {

// An all-reduce of 1 GiB over the 64 chips of an UltraServer.
void AllReduce64Chips1GibWall(benchmark::State& state) {
  const TorusLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
  std::vector<Member> members;
  for (int chip = 0; chip < 64; ++chip) members.push_back({.chip = torus::ChipIndex(chip)});
  for (auto _ : state) {
    auto plan = PlanCollective({.bytes = std::uint64_t{1} << 30}, members, links);
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK(AllReduce64Chips1GibWall)
    ->Name("allreduce_64_chips_1gib_wall_ms")
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tahoma::sim

BENCHMARK_MAIN();
